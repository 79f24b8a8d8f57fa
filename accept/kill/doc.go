// Package kill runs the main job as a process, kills it at bad moments, starts
// it again, and compares what it wrote with an oracle that shares no code with
// the engine.
package kill
