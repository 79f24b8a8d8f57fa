package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/task"
)

// endAttempt stops all subtasks. Why is what the restart policy is told.
func (x *Execution) endAttempt(a *attempt, cause error) {
	if x.att != a || a.ending {
		return
	}
	a.ending, a.cause = true, cause
	for key := range a.timers {
		a.cancelTimer(key)
	}
	a.cancel(cause)
	if a.deployed {
		x.opt.Workers.Kill(cause)
		x.watchStuck(a)
	} else {
		a.stopped = true
	}
	if a.coord != nil {
		x.tell(a, checkpoint.AttemptEnded{})
	} else {
		a.closed = true
		x.tryClose(a)
	}
}

// finishAttempt ends an attempt that has nothing left to do: the subtasks are
// told to close.
func (x *Execution) finishAttempt(a *attempt, f checkpoint.Finish) {
	a.succeeded = true
	for _, s := range a.subtasks {
		x.deliver(a, s.ID, task.Stop{})
	}
	a.ending, a.closed = true, true
	for key := range a.timers {
		a.cancelTimer(key)
	}
	x.watchStuck(a)
}

// endFinal ends an attempt that restored a final checkpoint: what it names is
// committed, and nothing is left to run.
func (x *Execution) endFinal(a *attempt) {
	r := a.restored.entry
	x.emit(Started{Restored: r.ID, Final: true, Epoch: a.epoch})
	end := func() {
		a.ending, a.succeeded, a.stopped, a.closed = true, true, true, true
		x.watchStuck(a)
		x.tryClose(a)
	}
	// What an older checkpoint of the branch names is committed too: the final one
	// would name it otherwise.
	last := checkpoint.ID(0)
	for _, c := range x.view.Uncommitted() {
		if x.view.Continues(c) {
			last = c.ID
		}
	}
	if last == 0 {
		end()
		return
	}
	x.appendCommitted(a, ckptlog.Committed{ID: last, Lineage: r.Lineage}, end)
}

// tryClose goes on once nothing of the attempt runs any more.
func (x *Execution) tryClose(a *attempt) {
	if a == nil || x.att != a || x.finished || !a.ending || !a.closed || !a.stopped || a.works > 0 || a.telling {
		return
	}
	if a.succeeded && !a.fatal && !x.stopping && !x.logCalls.idle() {
		return // what the last checkpoint made superfluous is still being disposed of
	}
	a.cancel(errEnded)
	if a.packers != nil && !a.unpacked {
		// Off the loop: it may wait for an object that is being sealed.
		a.unpacked = true
		x.inAttempt(a, "abort packers", func(context.Context) error { a.packers.close(); return nil }, func(error) {})
		return
	}
	x.close(a)
}

// close ends an attempt and decides what follows.
func (x *Execution) close(a *attempt) {
	x.att = nil
	x.littered = x.littered || a.littered
	if a.coord != nil {
		x.nextID = a.coord.NextID()
	}
	x.wishes.asked, x.wishes.busy = "", false // the next attempt is asked again
	x.metrics.settle()
	for _, h := range a.hosts {
		if h != nil && h.enum != nil {
			if err := h.enum.Close(); err != nil {
				x.log.Warn("closing the enumerator failed", "source", h.source, "err", err)
			}
		}
	}
	switch {
	case a.succeeded:
		x.finish(nil)
	case x.stopping && !a.fatal:
		x.finish(nil)
	case a.fatal || permanent(a.cause):
		x.finish(a.cause)
	default:
		x.restart(a)
	}
}

// leave ends the job though the store still owes an answer, and says whether it
// may: not while anything of the user's runs.
//
//   - The job has succeeded. Its last checkpoint and that everything is committed
//     stand in the log, so what can be on the way is a record that disposes of
//     older checkpoints, a look at the log, and the deletion of objects. The
//     next start does all of that again.
//   - The job is being stopped, and it is undecided whether a record is in the
//     log. Nothing would follow from the answer in this process, and the takeover
//     of the next start decides it.
//
// An attempt that failed does wait, for as long as it takes: what the next one
// restores depends on the answer.
func (x *Execution) leave(a *attempt) bool {
	switch {
	case a.fatal || !a.stopped || !a.enum.idle():
		return false
	case a.succeeded:
		x.log.Warn("the store does not answer; the job ends without waiting for it: everything is committed and recorded, and what is superfluous is left to the next start")
	case x.stopping && a.works == 0:
		x.log.Warn("the store does not answer; the job stops without waiting for it: whether the last record is in the checkpoint log is undecided, and the next start finds out")
	default:
		return false
	}
	a.cancel(errEnded)
	if a.packers != nil && !a.unpacked {
		a.unpacked = true
		x.env.Go("abort packers", a.packers.close)
	}
	x.close(a)
	return true
}

// watchStuck bounds the end of an attempt by the cancel deadline. A subtask that
// does not stop gives the job up: its goroutine may still act, so no other
// attempt may begin in this process. A store that does not answer does so only
// where the answer matters.
func (x *Execution) watchStuck(a *attempt) {
	x.env.After(x.opt.CancelDeadline, func() {
		x.in.post(func() {
			if x.att != a || x.finished || x.leave(a) || a.stopped && a.works == 0 {
				return
			}
			stuck := x.opt.Workers.Stuck()
			err := fmt.Errorf("%w within %v: %s", ErrStuck, x.opt.CancelDeadline, strings.Join(stuck, "; "))
			if a.cause != nil {
				err = fmt.Errorf("%w (stopping because: %w)", err, a.cause)
			}
			if a.succeeded {
				err = fmt.Errorf("%w (everything is committed)", err)
			}
			x.log.Error("job is stuck; the process must end before it runs again", "err", err, "stacks", stuckStacks())
			x.att = nil
			x.finish(err)
		})
	})
}
