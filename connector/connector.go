// Package connector is the contract of sources and sinks.
//
// A source is an Enumerator, one a job, that finds splits, and Readers, one a
// subtask, that read them. A sink makes Writers, one a subtask; a sink of kind
// Transactional is also a Committer, one a job.
package connector

import (
	"iter"
	"log/slog"
	"time"
)

// CheckpointID numbers the checkpoints of a job from 1.
type CheckpointID uint64

// Instance says which subtask a reader or writer serves, in which attempt.
// (Job, Lineage, Generation, Attempt, Operator, Subtask) and a checkpoint id
// name something that no other attempt will ever name: make staged names and
// transactional ids of all of them.
type Instance struct {
	Job, Operator        string
	Subtask, Parallelism int    // Subtask is -1 for what serves the whole job
	Lineage              uint64 // branch of the job's history
	Generation           uint64 // of the coordinator, grows with each start; fences older ones
	Attempt              uint64 // run between two restarts, within a generation, from 1
	Log                  *slog.Logger
}

// Batch is a run of records. Its slices are valid only during the call.
type Batch[T any] struct {
	Values []T
	Times  []int64 // event times in Unix nanoseconds; nil if the stream has none
	Bad    []Bad   // what a reader could not decode, for the dead-letter side or as the failure
}

// Bad is a piece of input that a reader could not decode. The record is not in
// Values; the offset that Poll returns is behind it.
type Bad struct {
	Raw  []byte
	Err  error
	From string // where it stood: file, line and offset, or topic, partition and offset
}

// All yields the records with their event time.
func (b Batch[T]) All() iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) {
		for i, v := range b.Values {
			var t time.Time
			if b.Times != nil {
				t = time.Unix(0, b.Times[i])
			}
			if !yield(t, v) {
				return
			}
		}
	}
}
