// Package task runs one subtask: its mailbox, its input gate, its chain and
// its outputs. A Task is a step machine: Step handles one mail or one slice of
// a batch and never blocks, so that a goroutine, or a simulator's scheduler,
// can drive it.
package task

import (
	"context"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
)

// Lead is what a subtask tells its coordinator. Its methods are called on the
// subtask's goroutine or on the executor, and do not block.
type Lead interface {
	// Ready says that every operator is open and restored.
	Ready(s checkpoint.SubtaskID, e checkpoint.Epoch)
	Ack(a checkpoint.Ack)
	Decline(d checkpoint.Decline)
	// Ended says that every input has ended, all operators have finished, and
	// everything they emitted has left the subtask.
	Ended(s checkpoint.SubtaskID, e checkpoint.Epoch)
	// Failed says that the subtask cannot go on; it stops by itself.
	Failed(s checkpoint.SubtaskID, e checkpoint.Epoch, err error)
	// Reserve asks for a reservation; the answer is a Reserved mail.
	Reserve(s checkpoint.SubtaskID, e checkpoint.Epoch, token uint64, r []operator.Reservation)
}

// Mail is what a coordinator tells a subtask: one of checkpoint.Trigger,
// checkpoint.Complete, checkpoint.Committed, checkpoint.Abort, AddSplits,
// NoMoreSplits, Reserved, Stop.
type Mail any

type (
	// AddSplits hands splits to the source of the chain.
	AddSplits struct{ Splits []checkpoint.Split }
	// NoMoreSplits says that no split will be added any more.
	NoMoreSplits struct{}
	// Reserved answers Lead.Reserve.
	Reserved struct {
		Token uint64
		Err   error
	}
	// Stop ends the subtask after a job that is complete: operators are closed.
	Stop struct{}
)

// Executor runs work off the subtask's goroutine. The context ends with the attempt.
type Executor interface {
	Go(work func(ctx context.Context))
}

// Packers gives the packer that all subtasks of a process share for one checkpoint.
type Packers interface {
	Packer(id checkpoint.ID) *statefile.Packer
}

// Status is what a Step leaves.
type Status struct {
	Worked    bool            // something was done: step again
	Closed    bool            // the subtask has stopped and is closed
	Available <-chan struct{} // step again when it is ready to receive from; nil: never
	At        int64           // step again at this time (Unix nanoseconds); 0: not by time
}
