// Package powerloss runs the main job over a file system that records its
// calls, and starts it again on what the disk may hold if the power had failed
// after any of them.
package powerloss
