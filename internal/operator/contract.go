// Package operator is the contract between a subtask and the operators of its
// chain, and the operators that need no user context: sources, sinks,
// stateless functions and the edges that leave a subtask.
//
// A chain runs a slice of a batch operator by operator to its tail: each
// operator takes a run of records, fills its own output run, and hands that to
// the next one by a direct call. Nothing in here blocks; what must block goes
// through Runtime.Exec.
package operator

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// Input takes the records of one kind inside a chain: an operator's entry or
// the writer of an edge. A run is valid only during the call, and is not
// changed by who takes it: several consumers may be given the same run.
type Input[T any] interface {
	Process(r *element.Run[T]) error
	Watermark(t int64) error
}

// Operator is one operator of one subtask of one attempt. All methods are
// called on the subtask's goroutine.
type Operator interface {
	// Open makes the operator ready; state is restored in it. It may use
	// rt.Exec for what blocks and return before that is done: the subtask is
	// ready once nothing that Open started is outstanding.
	Open(rt *Runtime) error
	// Finish is called once, head to tail, when every input has ended and all
	// their records are processed: what is still held back is emitted.
	Finish() error
	// Snapshot is the sync phase. It must not grow with the state. Nil says that
	// there is nothing to keep. An error declines the checkpoint, with the
	// reason of a DeclineError or as SyncFailed; the subtask goes on.
	Snapshot(b checkpoint.Barrier) (Snapshot, error)
	// Complete, Abort and Committed carry the coordinator's word, each id once.
	// An error is reported; it does not keep other operators from being told.
	Complete(id checkpoint.ID) error
	Abort(id checkpoint.ID) error
	Committed(id checkpoint.ID) error
	// Close releases everything; it is called once also after a failed Open, and
	// not before everything that was given to Exec has returned.
	Close() error
}

// Snapshot is what a sync phase leaves for the async phase.
type Snapshot interface {
	// Write writes the snapshot, off the subtask's goroutine, and returns the
	// operator's part of the ack once all of it is durable (statefile.Collect).
	// p is a handle of this operator alone.
	Write(ctx context.Context, p *statefile.Packer) (checkpoint.OperatorAck, error)
	// Release is called once, on the subtask's goroutine, after Write returned
	// or instead of it.
	Release()
}

// Preparer is implemented by sinks: before the barrier leaves, Prepare makes
// all written records durable. It starts the work and calls done once, on the
// subtask's goroutine. An error ends the attempt.
type Preparer interface {
	Prepare(b checkpoint.Barrier, done func(error))
}

// Throttle is implemented by operators that write off the subtask's goroutine:
// while Full is true the subtask takes no new slice.
type Throttle interface{ Full() bool }

// Timers is implemented by operators with processing-time timers.
type Timers interface {
	// NextTimer is when the earliest timer is due, in Unix nanoseconds.
	NextTimer() (at int64, ok bool)
	// FireTimers fires at most max timers due at now.
	FireTimers(now int64, max int) (fired int, err error)
}

// Source is the head of a chain without inputs.
type Source interface {
	Operator
	// AddSplits hands splits over; their positions are in them.
	AddSplits(s []checkpoint.Split) error
	// NoMoreSplits says that no split will be added any more.
	NoMoreSplits()
	// Poll emits at most max records of one split down the chain.
	Poll(now int64, max int) (PollResult, error)
	// Available is ready to receive from when Poll may have something.
	Available() <-chan struct{}
}

// PollResult says what a Source's Poll found.
type PollResult struct {
	Records int
	// Idle: there is nothing now. NotBefore, if not 0, says when to try again
	// (a rate limit), in Unix nanoseconds.
	Idle      bool
	NotBefore int64
	// Ended: all splits are done and no more will be added.
	Ended bool
}

// Where is implemented by operators (and edges) that run user code: while it
// runs, and after it failed or panicked, Where describes the record in hand.
type Where interface {
	// Where names the operator and, if known, the record: "account", "key c-17,
	// record {...}". The record is empty while none of the operator's user code
	// runs, also while an operator behind it does: that is how a panic is blamed.
	Where() (operator, record string)
}

// Runtime is what a subtask gives its operators.
type Runtime struct {
	Instance connector.Instance // Operator is set per operator
	Context  context.Context    // ends with the attempt
	Mode     checkpoint.Mode
	Now      func() int64 // processing time, Unix nanoseconds
	HashSeed uint64
	Range    checkpoint.HashRange // the keys of this subtask
	Store    storage.Store        // to read what is restored
	Restore  *Restore             // of this operator; nil: starts empty
	Log      *slog.Logger
	// Exec runs work off the subtask's goroutine, in no order with other work,
	// then calls then (if not nil) on the subtask's goroutine, unless the subtask
	// has failed or was stopped meanwhile. So what must be closed is kept by work
	// itself; it may, since Close is called only when all work has returned.
	Exec func(work func(ctx context.Context), then func())
	// Fail ends the attempt with err. Like Exec, Reserve and Counter it is for
	// the subtask's goroutine.
	Fail func(err error)
	// Reserve (AtMostOnce sources) asks for a reservation to be logged, and
	// calls done on the subtask's goroutine when it is in the log.
	Reserve func(r []Reservation, done func(error))
	Counter func(name string) *Counter
}

// Reservation says how far a source may emit: a split, up to a position that a
// Poll returned.
type Reservation struct {
	Operator string
	Split    string
	End      connector.Offset
}

// Restore is what an operator starts from.
type Restore struct {
	ID      checkpoint.ID
	Op      checkpoint.OperatorManifest // as in the manifest
	Objects []checkpoint.Object         // what its refs index into
	// Finished says that every old subtask had ended: the operator starts ended.
	Finished bool
}

// Spec is one operator of the logical graph, with its types erased. The values
// of type any in it and in Made are checked by the generic code that made it.
type Spec struct {
	Meta checkpoint.OperatorMeta
	// Make makes one subtask's operator. outs[port] are the consumers of an
	// output port (0: main, then sides): each an Input of that port's type.
	Make func(outs [][]any) Made
	// Edge makes the writer of an edge that leaves the subtask from a port.
	Edge []func(e EdgeConfig) EdgeWriter
	// EdgeSchema describes the records of each port as they would be encoded.
	EdgeSchema []codec.Schema
	// Enumerator is set for sources.
	Enumerator func(ctx context.Context, i connector.Instance) (connector.Enumerator, error)
	// Assign is the user's assignment of splits to subtasks; nil: by weight, then in turn.
	Assign func(s []connector.Split, parallelism int) []int
	// Committer is set for transactional sinks, Fencer for sinks that fence.
	Committer connector.Committer
	Fencer    connector.Fencer
	Renewer   connector.Renewer // set for sinks that can set old output aside
}

// Made is one operator of one subtask.
type Made struct {
	Op      Operator
	Entries []Entry // by input port; empty for a source
}

// Entry is an input port with its type erased.
type Entry interface {
	// Run processes records [from, to) of b.
	Run(b element.Batch, from, to int) error
	Watermark(t int64) error
	// Input is the typed Input[T], for an operator before it in the chain.
	Input() any
}

// EdgeConfig says how an edge distributes records.
type EdgeConfig struct {
	Name     string // for messages: "orders -> account"
	Kind     graph.EdgeKind
	Hash     any // Hash edges: func(seed uint64) (func(T) uint64, error)
	HashSeed uint64
	Outs     []Channel // one a receiving subtask; Forward: exactly one
	First    int       // Rebalance: where to begin, so that senders do not all begin at 0
	Batch    int       // records in a batch; 0: 1024
}

// Channel is the sending end of a channel to another subtask: a *transport.Ring.
type Channel interface {
	// Push appends e unless the channel is full.
	Push(e element.Element) bool
	// Cap is how many elements it holds.
	Cap() int
	// NotifyProducer sets what a full channel calls when it has room again.
	NotifyProducer(wake func())
}

// EdgeWriter is an edge that leaves a subtask, with its type erased. Records
// that it takes go into batches and then, without bound, into an overflow that
// Flush drains; the subtask takes no new slice while Flush returns false.
type EdgeWriter interface {
	Input() any // the typed Input[T]
	// Emit appends a barrier, cancel marker, watermark or end of input behind all
	// records taken so far, to every channel.
	Emit(e element.Element)
	// Flush pushes what the channels take; all of it: true. partial also sends
	// batches that are not full.
	Flush(partial bool) bool
	// Queued is how many records wait in batches and overflow.
	Queued() int
	// Notify sets what is called when a channel that was full has room again.
	Notify(wake func())
}

// Counter is a metric that grows. It may be read at any time by anyone.
type Counter struct{ n atomic.Int64 }
