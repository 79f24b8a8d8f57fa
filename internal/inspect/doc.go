// Package inspect answers what an operator asks of a checkpoint store: what is
// in it, what each checkpoint holds and how it was taken, whether every byte is
// as it was written, and what could go.
//
// List, Show and Verify only read, Collect also deletes. All four own nothing
// and may run beside the job: they read the log as it stands, and when
// something that the log named is gone they read the log again before they call
// it missing, since the job may have disposed of the checkpoint meanwhile.
//
// Results are structs with JSON tags; a field that has a unit has it in its
// name. Their WriteText methods say the same to people.
//
//	history.go   the log, and the manifests that it names
//	tables.go    splits, committables and statistics of a manifest
//	list.go      List
//	show.go      Show; operators.go, timings.go and slowest.go fill its parts
//	verify.go    Verify; fault.go says what is wrong with an object
//	collect.go   Collect
//	text*.go     the text of each
package inspect
