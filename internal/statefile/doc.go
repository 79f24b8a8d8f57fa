// Package statefile is the one format in which state lies in a store: objects
// of runs, runs of blocks, blocks of columns. Every backend writes it and every
// restore reads it, at any parallelism. docs/format/state.md has the bytes.
//
// Writing: a process has one Packer for a checkpoint. Each subtask takes a
// handle of it (Packer.Subtask), writes runs (Packer.NewRun, RunWriter.Add,
// RunWriter.Finish) and waits until they are durable (Collect). Small runs stay
// in memory and go into the manifest, the others share objects.
//
// Reading: OpenRun reads the index of a run, Run.All its entries, Verify
// everything. What was not written as it is read is a CorruptError that names
// the object, the place, what was expected and what was found; a store that
// does not answer is an error of the store.
package statefile
