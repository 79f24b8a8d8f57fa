package task

import (
	"errors"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
)

// alignment is what was measured when the first barrier of a checkpoint was
// handled.
type alignment struct {
	id     checkpoint.ID
	queued []int64 // per channel, the records ahead of its barrier
}

// preparing is a checkpoint between Begin and the sinks' last answer.
type preparing struct {
	begin   checkpoint.Begin
	since   int64
	waiting int // sinks that have not answered
}

// trigger handles a Trigger mail. It is refused before the operators are ready:
// the coordinator is told at once, and nobody downstream waits for a barrier.
func (t *Task) trigger(m checkpoint.Trigger) {
	if t.phase < running {
		t.observe("fail")
		t.apply(t.barriers.Fail(m.Barrier.ID, checkpoint.NotReady, fmt.Sprintf("task %v is not ready", t.cfg.ID)))
		return
	}
	t.observe("trigger")
	t.apply(t.barriers.Trigger(m.Barrier, t.cfg.Now()))
}

// apply carries out what Barriers decided, in order.
func (t *Task) apply(actions []checkpoint.Action) {
	for _, a := range actions {
		if t.phase >= closing {
			break
		}
		switch a := a.(type) {
		case checkpoint.AlignmentStarted:
			t.alignments = append(t.alignments, alignment{a.Barrier.ID, t.gate.ahead(a.Barrier.ID)})
		case checkpoint.Block:
			t.gate.block(a.Channel)
		case checkpoint.Unblock:
			t.gate.unblock(a.Channel)
		case checkpoint.Begin:
			t.begin(a)
		case checkpoint.Emit:
			t.emit(element.Element{Kind: element.Barrier, Barrier: a.Barrier})
		case checkpoint.Snapshot:
			t.snapshot(a.Barrier)
		case checkpoint.SendDecline:
			t.forget(a.ID)
			t.cfg.Lead.Decline(checkpoint.Decline{Subtask: t.cfg.ID, Epoch: t.cfg.Epoch, ID: a.ID, Reason: a.Reason, Detail: a.Detail})
		case checkpoint.ForwardCancel:
			t.forget(a.ID)
			t.emit(element.Element{Kind: element.CancelMarker, Barrier: checkpoint.Barrier{ID: a.ID}})
		case checkpoint.Discard:
			t.discard(a.ID)
			t.tellAborted(a.ID)
		case checkpoint.NotifyComplete:
			t.tell(a.ID, "complete", operator.Operator.Complete)
		default:
			panic(fmt.Sprintf("task: action %v of type %T", a, a))
		}
	}
	t.counters.barriers(t.barriers.Counters())
}

// begin has the sinks prepare. Until all have answered no record is processed,
// while mail still is: what they prepared are the records before the barrier.
func (t *Task) begin(b checkpoint.Begin) {
	now := t.cfg.Now()
	p := &preparing{begin: b, since: now, waiting: len(t.preparers) + 1}
	t.preparing = p
	t.doing.set(Preparing, 0, now)
	answered := func(err error) {
		if err != nil {
			t.fail(err)
		}
		if p.waiting--; p.waiting == 0 && t.phase < closing {
			t.prepared()
		}
	}
	for _, s := range t.preparers {
		s.Prepare(b.Barrier, answered)
	}
	answered(nil)
}

// prepared sends the barrier on and takes the snapshot, unless the checkpoint
// was aborted meanwhile.
func (t *Task) prepared() {
	p := t.preparing
	id := p.begin.Barrier.ID
	t.observe("prepared")
	t.apply(t.barriers.Prepared(id, t.cfg.Now()))
	t.forget(id)
	if t.preparing == p { // else the next checkpoint has begun
		t.preparing = nil
		t.doing.set(Idle, 0, t.cfg.Now())
	}
}

// declined says why an operator's sync phase failed.
func declined(op string, err error) (checkpoint.Reason, string) {
	reason := checkpoint.SyncFailed
	if d, ok := errors.AsType[*operator.DeclineError](err); ok {
		reason = d.Reason
	}
	return reason, fmt.Sprintf("operator %q: %v", op, err)
}

// checkAlignmentLimit gives up a checkpoint that holds back too much.
func (t *Task) checkAlignmentLimit() {
	if t.opt.AlignmentLimit <= 0 || t.preparing != nil {
		return
	}
	if held := t.gate.held(); held > t.opt.AlignmentLimit {
		t.observe("limit")
		t.apply(t.barriers.LimitExceeded(fmt.Sprintf("task %v holds back %d records, the limit is %d", t.cfg.ID, held, t.opt.AlignmentLimit)))
	}
}

func (t *Task) queued(id checkpoint.ID) []int64 {
	for _, a := range t.alignments {
		if a.id == id {
			return a.queued
		}
	}
	return nil
}

func (t *Task) forget(id checkpoint.ID) {
	t.alignments = slices.DeleteFunc(t.alignments, func(a alignment) bool { return a.id == id })
}

// tell calls a method of every operator. One that fails is reported and keeps
// no other one from being told; a panic ends the attempt, after that.
func (t *Task) tell(id checkpoint.ID, what string, f func(operator.Operator, checkpoint.ID) error) {
	var panicked error
	for i, op := range t.cfg.Ops {
		t.doing.set(Notifying, i, t.cfg.Now())
		err := guard(op.Name, func() error { return f(op.Op, id) })
		if err == nil {
			continue
		}
		t.log.Error("operator failed to take note of a checkpoint", "operator", op.Name, "checkpoint", id, "event", what, "err", err)
		if _, ok := errors.AsType[*PanicError](err); ok && panicked == nil {
			panicked = err
		}
	}
	t.doing.set(Idle, 0, t.cfg.Now())
	t.check(panicked)
}

// How many aborted ids are remembered so that operators hear of each once: by
// Discard when this subtask failed, and by the coordinator's mail after it.
const maxTold = 64

func (t *Task) tellAborted(id checkpoint.ID) {
	if slices.Contains(t.aborted, id) {
		return
	}
	if len(t.aborted) == maxTold {
		t.aborted = slices.Delete(t.aborted, 0, 1)
	}
	t.aborted = append(t.aborted, id)
	t.tell(id, "abort", operator.Operator.Abort)
}

func (t *Task) tellCommitted(id checkpoint.ID) {
	if id <= t.committed {
		return
	}
	t.committed = id
	t.tell(id, "committed", operator.Operator.Committed)
}
