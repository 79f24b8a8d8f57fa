// Package lint holds the rules of the repository as tests.
package lint
