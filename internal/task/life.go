package task

import (
	"fmt"
	"runtime/debug"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
)

// open opens the operators, tail first: whoever is open may emit.
func (t *Task) open() {
	t.phase, t.since = opening, t.cfg.Now()
	for i := len(t.cfg.Ops) - 1; i >= 0; i-- {
		t.doing.set(Opening, i, t.cfg.Now())
		t.opened++
		if err := t.cfg.Ops[i].Op.Open(t.runtime(i)); err != nil {
			t.fail(fmt.Errorf("open operator %q: %w", t.cfg.Ops[i].Name, err))
			return
		}
		if t.phase != opening {
			return // failed by Runtime.Fail
		}
	}
}

// ready begins to process. Mail about checkpoints that came before is for open
// operators, and is handled now.
func (t *Task) ready() {
	t.phase = running
	t.doing.set(Idle, 0, t.cfg.Now())
	t.cfg.Lead.Ready(t.cfg.ID, t.cfg.Epoch)
	early := t.early
	t.early = nil
	for _, m := range early {
		t.handle(m)
	}
}

// handle handles one mail.
func (t *Task) handle(m Mail) {
	if r, ok := m.(returned); ok {
		t.back(r)
		return
	}
	if t.phase >= closing {
		return
	}
	switch m := m.(type) {
	case AddSplits:
		if t.source == nil {
			panic(fmt.Sprintf("task: splits for %v, which is no source", t.cfg.ID))
		}
		t.check(t.source.AddSplits(m.Splits))
	case NoMoreSplits:
		if t.source == nil {
			panic(fmt.Sprintf("task: splits for %v, which is no source", t.cfg.ID))
		}
		t.source.NoMoreSplits()
	case Reserved:
		t.reserved(m)
	case Stop:
		t.stop()
	case checkpoint.Trigger:
		if t.current(m.Epoch) {
			t.trigger(m)
		}
	case checkpoint.Complete:
		if t.current(m.Epoch) && !t.tooEarly(m) {
			t.observe("complete")
			t.apply(t.barriers.Complete(m.ID))
		}
	case checkpoint.Abort:
		if t.current(m.Epoch) && !t.tooEarly(m) {
			t.observe("abort")
			t.apply(t.barriers.Abort(m))
			t.tellAborted(m.ID)
		}
	case checkpoint.Committed:
		if t.current(m.Epoch) && !t.tooEarly(m) {
			t.tellCommitted(m.ID)
		}
	default:
		panic(fmt.Sprintf("task: mail of type %T", m))
	}
}

// current says whether mail is of this attempt. What another one sent, a
// fenced coordinator's last words among it, is refused.
func (t *Task) current(e checkpoint.Epoch) bool {
	if e == t.cfg.Epoch {
		return true
	}
	t.counters.refused.Add(1)
	t.log.Warn("refused mail of another attempt", "epoch", e.String(), "own", t.cfg.Epoch.String())
	return false
}

// tooEarly keeps mail until the operators are open.
func (t *Task) tooEarly(m Mail) bool {
	if t.phase >= running {
		return false
	}
	t.early = append(t.early, m)
	return true
}

// finish ends the operators, head to tail, so that what one emits is processed
// by the next before that one ends. Processing-time timers that are not due yet
// are not fired. An operator that had ended before the restored checkpoint has
// emitted its last then.
func (t *Task) finish() {
	for i, op := range t.cfg.Ops {
		if op.Restore != nil && op.Restore.Finished {
			continue
		}
		t.doing.set(Finishing, i, t.cfg.Now())
		if err := op.Op.Finish(); err != nil {
			t.fail(fmt.Errorf("finish operator %q: %w", op.Name, err))
			return
		}
	}
	t.doing.set(Idle, 0, t.cfg.Now())
	t.finished = true
	t.emit(element.Element{Kind: element.EndOfInput})
	t.endSent = true
	t.phase = ending
}

// leave waits until all that was emitted has left, and then for mail: a
// subtask that ended still takes part in checkpoints and holds committables.
func (t *Task) leave() Status {
	if t.phase == ended {
		return t.waits(forMail)
	}
	if !t.flush(true) {
		return t.waits(forRoom)
	}
	if t.execs > 0 {
		return t.waits(forMail)
	}
	t.phase = ended
	t.cfg.Lead.Ended(t.cfg.ID, t.cfg.Epoch)
	return Status{Worked: true}
}

// fail ends the attempt because of err.
func (t *Task) fail(err error) {
	if t.phase >= closing {
		return
	}
	t.stop()
	t.cfg.Lead.Failed(t.cfg.ID, t.cfg.Epoch, err)
}

// stop begins to close: what runs on the executor is told to end.
func (t *Task) stop() {
	if t.phase >= closing {
		return
	}
	t.phase, t.since = closing, t.cfg.Now()
	t.doing.set(Closing, 0, t.since)
	t.cancel()
}

// close closes every operator that was opened. One that fails or panics keeps
// no other one from being closed.
func (t *Task) close() {
	t.phase = closed
	for i := len(t.cfg.Ops) - t.opened; i < len(t.cfg.Ops); i++ {
		t.doing.set(Closing, i, t.cfg.Now())
		if err := guard(t.cfg.Ops[i].Name, t.cfg.Ops[i].Op.Close); err != nil {
			t.log.Error("close operator", "operator", t.cfg.Ops[i].Name, "err", err)
		}
	}
	t.doing.set(Idle, 0, t.cfg.Now())
}

// guard turns a panic into an error.
func guard(name string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Operator: name, Value: p, Stack: debug.Stack()}
		}
	}()
	return f()
}
