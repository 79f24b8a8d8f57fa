package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/task"
)

// tell hands an event to the coordinator of an attempt and carries out what it
// decides. Events that arise while actions are carried out wait their turn.
func (x *Execution) tell(a *attempt, e checkpoint.Event) {
	if x.att != a || a.coord == nil || x.finished {
		return // of an attempt that is over: its word does not count
	}
	a.events = append(a.events, e)
	if a.telling {
		return
	}
	if _, ready := e.(checkpoint.SubtaskReady); ready {
		if a.ready++; a.ready == len(a.subtasks) && !a.ending {
			x.running(a)
		}
	}
	a.telling = true
	for len(a.events) > 0 && x.att == a && !x.finished {
		e := a.events[0]
		a.events = a.events[1:]
		if x.opt.Observe != nil {
			x.opt.Observe("coordinator "+a.coord.State(), checkpoint.EventName(e))
		}
		for _, act := range a.coord.Handle(x.env.Now(), e) {
			x.carryOut(a, act)
		}
	}
	a.telling = false
	x.wish(a)
	x.tryClose(a)
}

// finalPause is how long a failed final checkpoint waits before the next try.
const finalPause = 500 * time.Millisecond

// tellFailure tells the coordinator of a failure. It tries a final checkpoint
// again at once: where the reason comes at once too, such as a full disk, that
// would spin.
func (x *Execution) tellFailure(a *attempt, id checkpoint.ID, final bool, e checkpoint.Event) {
	if !final || a.ending {
		x.tell(a, e)
		return
	}
	x.env.After(finalPause, func() {
		x.in.post(func() {
			if !a.coord.Decided(id) { // else it was given up meanwhile
				x.tell(a, e)
			}
		})
	})
}

func (x *Execution) carryOut(a *attempt, act checkpoint.Action) {
	switch act := act.(type) {
	case checkpoint.SetTimer:
		x.setTimer(a, act)
	case checkpoint.CancelTimer:
		a.cancelTimer(timerKey{act.Kind, act.ID})
	case checkpoint.Triggered:
		x.wishes.triggered(act.Token, act.ID)
	case checkpoint.Refused:
		x.wishes.refused(act)
	case checkpoint.SnapshotEnumerators:
		x.snapshotEnumerators(a, act)
	case checkpoint.ReleaseAssignments:
		x.releaseAssignments(a, act)
	case checkpoint.SendTrigger:
		if act.Trigger.Barrier.Kind == checkpoint.Final {
			a.final = act.Trigger.Barrier.ID
		}
		x.deliver(a, act.Subtask, act.Trigger)
	case checkpoint.Publish:
		x.publish(a, act)
	case checkpoint.Append:
		x.appendCheckpoint(a, act)
	case checkpoint.SendComplete:
		a.packers.forget(act.Complete.ID)
		x.deliverAll(a, act.Complete)
	case checkpoint.SendCommitted:
		x.deliverAll(a, act.Committed)
		delete(a.manifests, act.Committed.ID)
	case checkpoint.SendAbort:
		a.packers.abort(x.env, act.Abort.ID)
		x.deliverAll(a, act.Abort)
	case checkpoint.CommitSinks:
		x.commitSinks(a, act.ID)
	case checkpoint.AppendCommitted:
		x.appendCommitted(a, ckptlog.Committed{ID: act.ID, Lineage: a.lineage}, func() {
			x.tell(a, checkpoint.CommittedAppended{ID: act.ID})
		})
	case checkpoint.Dispose:
		x.dispose(act.IDs)
	case checkpoint.Report:
		x.report(a, act.Stats)
	case checkpoint.ReportSkipped:
		x.metrics.add("checkpoints.skipped", 1)
		x.log.Debug("checkpoint skipped: one is still pending", "skipped", act.Skipped)
	case checkpoint.ReportUndecided:
		a.undecided = act.ID
		x.log.Warn("it is undecided whether the checkpoint is in the log; no other is triggered", "checkpoint", act.ID)
	case checkpoint.FailJob:
		x.endAttempt(a, errors.New(act.Reason))
	case checkpoint.Finish:
		x.finishAttempt(a, act)
	case checkpoint.Closed:
		a.closed = true
	case checkpoint.Stop:
		x.fatal(fmt.Errorf("the checkpoint log: %w", ckptlog.ErrFenced))
	default:
		panic(fmt.Sprintf("cluster: action %T", act))
	}
}

type timerKey struct {
	kind checkpoint.TimerKind
	id   checkpoint.ID
}

func (x *Execution) setTimer(a *attempt, t checkpoint.SetTimer) {
	key := timerKey{t.Kind, t.ID}
	a.cancelTimer(key)
	d := max(time.Duration(t.At-x.env.Now()), 0)
	a.timers[key] = x.env.After(d, func() {
		x.in.post(func() {
			if t.Kind == checkpoint.TimerDue {
				x.tell(a, checkpoint.Due{})
			} else {
				x.tell(a, checkpoint.TimerFired{ID: t.ID})
			}
		})
	})
}

func (a *attempt) cancelTimer(key timerKey) {
	if stop := a.timers[key]; stop != nil {
		stop()
		delete(a.timers, key)
	}
}

func (x *Execution) deliver(a *attempt, s checkpoint.SubtaskID, m task.Mail) {
	if !a.ending {
		x.opt.Workers.Deliver(s, m)
	}
}

func (x *Execution) deliverAll(a *attempt, m task.Mail) {
	for _, s := range a.subtasks {
		x.deliver(a, s.ID, m)
	}
}

// appendCheckpoint appends the record that makes a checkpoint complete. Its
// outcome matters also when the attempt has ended meanwhile: the checkpoint to
// restore is chosen only when it is decided.
func (x *Execution) appendCheckpoint(a *attempt, act checkpoint.Append) {
	m := a.manifests[act.ID]
	x.appendRecord(ckptlog.Checkpoint{
		ID: act.ID, Lineage: a.lineage, Parent: act.Parent, Epoch: a.epoch, Purpose: act.Kind,
		Manifest: m.record, Committables: act.Uncommitted,
	}, func(err error) {
		if err != nil {
			delete(a.manifests, act.ID)
			// One that was undecided has waited long enough before its next try.
			pause := act.Kind == checkpoint.Final && a.undecided != act.ID
			x.tellFailure(a, act.ID, pause, checkpoint.AppendVoided{ID: act.ID, Err: err})
			return
		}
		x.result.Checkpoints++
		x.result.Records = m.records
		x.objects[act.ID] = m.objects
		x.failed = x.failed[min(len(x.failed), m.failures):]
		x.tell(a, checkpoint.Appended{ID: act.ID})
	})
}

// inAttempt runs work of an attempt off the loop. The attempt is not over
// before it has returned; then is called in the loop, also when the attempt is
// ending.
func (x *Execution) inAttempt(a *attempt, name string, work func(ctx context.Context) error, then func(error)) {
	a.works++
	x.env.Go(name, func() {
		err := guard(name, func() error { return work(a.ctx) })
		x.in.post(func() {
			a.works--
			then(err)
			x.tryClose(a)
		})
	})
}
