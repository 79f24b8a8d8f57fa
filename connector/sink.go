package connector

import (
	"context"
	"errors"
	"time"
)

// SinkKind is what a sink can promise.
type SinkKind uint8

const (
	AtLeastOnce   SinkKind = iota // a replayed record is written again
	Idempotent                    // a replayed record overwrites itself, by a declared key
	Transactional                 // records become visible at commit; the sink implements Committer
)

func (k SinkKind) String() string {
	switch k {
	case AtLeastOnce:
		return "at-least-once"
	case Idempotent:
		return "idempotent"
	case Transactional:
		return "transactional"
	}
	return "unknown"
}

// SinkSpec says what a sink promises as configured. It is asked for at plan time, without I/O.
type SinkSpec struct {
	Kind               SinkKind
	Key                []string      // Idempotent: what a record overwrites by
	Fenced             bool          // Idempotent: each write checks that no newer generation has begun
	TransactionTimeout time.Duration // Transactional: how long a prepared transaction survives; 0: for ever
	Readers            string        // what readers must do to see committed records only: "isolation.level=read_committed"
	System, Why        string        // as in SourceSpec
}

// Sink makes writers, one a subtask. A sink of kind Transactional also implements Committer.
type Sink[T any] interface {
	Spec() SinkSpec
	Writer(ctx context.Context, i Instance) (Writer[T], error)
}

// Writer writes the records of one subtask. Its methods are called one at a time, off the subtask's
// goroutine, and may block. A batch is sized so that Write takes about 10 ms.
type Writer[T any] interface {
	// Write takes a batch. It may buffer, and keeps none of b's slices.
	Write(ctx context.Context, b Batch[T]) error
	// Prepare makes all written records durable, and returns what must be committed to make them
	// visible: nothing if there were no records or if the sink is not transactional. Write goes on
	// with the next epoch before these are committed: epochs must not share a transaction.
	// An error ends the attempt; it is never only a decline of the checkpoint.
	Prepare(ctx context.Context, id CheckpointID) ([]Committable, error)
	// Close drops what was not prepared.
	Close() error
}

// Committable names a prepared transaction; it is kept in the checkpoint.
type Committable struct {
	ID   string `cbor:"1,keyasint"` // unique in the job; for messages and for `transactions list`
	Data []byte `cbor:"2,keyasint,omitempty"`
}

// Committer commits what writers prepared. It may run in another process than the writer.
type Committer interface {
	// Commit makes cs visible. Committing again what is committed is no error. What cannot be
	// committed now is tried again; ErrLost ends the job with what may be missing.
	Commit(ctx context.Context, cs []Committable) error
	// Recover runs once per sink in every attempt, before any writer is made: commit what is in
	// pending (of all subtasks), drop all else that older attempts of this job left behind.
	Recover(ctx context.Context, i Instance, pending []Committable) error
}

// Fencer is implemented by an Idempotent sink that fences older generations
// itself. Fence runs once in every attempt, before any writer is made.
type Fencer interface {
	Fence(ctx context.Context, i Instance) error
}

// Renewer is implemented by a sink that can set aside what earlier runs of the
// job have committed. Renew runs when the user starts the job fresh, before
// anything of the new run is written, and again if that start was interrupted.
// It says, for the user, what becomes of the old output.
type Renewer interface {
	Renew(ctx context.Context, i Instance) (what string, err error)
}

// ErrLost says that a prepared transaction can never be committed.
var ErrLost = errors.New("connector: prepared transaction is lost")

// ErrFenced says that a newer generation of the job has begun; the process must stop.
var ErrFenced = errors.New("connector: fenced by a newer generation")

// TransactionalSink is for `var _ connector.TransactionalSink[T] = (*Sink)(nil)`.
type TransactionalSink[T any] interface {
	Sink[T]
	Committer
}
