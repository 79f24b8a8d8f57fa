package task

import (
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
)

// work does what there is to do between two mails.
func (t *Task) work() Status {
	t.checkAlignmentLimit()
	switch {
	case !t.flush(false):
		return t.waits(forRoom)
	case t.preparing != nil:
		return t.waits(forPrepare)
	case t.throttled():
		return t.waits(forRoom)
	case t.phase != running:
		return t.leave()
	}
	now := t.cfg.Now()
	fired, next := t.fire(now)
	if t.phase != running {
		return Status{Worked: true} // failed
	}
	if fired && !t.flush(false) {
		return t.waits(forRoom)
	}
	var st Status
	if t.source != nil {
		st = t.poll(now)
	} else {
		st = t.take(now)
	}
	if st.Worked || fired {
		t.flushInTime(now)
		return Status{Worked: true}
	}
	t.flushed = now
	if !t.flush(true) {
		return t.waits(forRoom)
	}
	if next != 0 && (st.At == 0 || next < st.At) {
		st.At = next
	}
	t.waitFor = forInput
	t.doing.set(Idle, 0, now)
	return st
}

// poll takes the next records of the source.
func (t *Task) poll(now int64) Status {
	t.doing.set(Processing, 0, now)
	res, err := t.source.Poll(now, t.slice.n)
	if err != nil {
		t.fail(err)
		return Status{Worked: true}
	}
	if res.Ended {
		t.finish()
		return Status{Worked: true}
	}
	if res.Idle {
		return Status{Available: t.source.Available(), At: res.NotBefore}
	}
	t.slice.took(res.Records, t.cfg.Now()-now)
	return Status{Worked: true}
}

// take takes the next slice, or the next other element, from the gate.
func (t *Task) take(now int64) Status {
	if t.gate.open == 0 {
		t.finish()
		return Status{Worked: true}
	}
	ch := t.gate.next()
	if ch == nil {
		return Status{}
	}
	if ch.batch == nil {
		t.element(ch, now)
		return Status{Worked: true}
	}
	t.doing.set(Processing, 0, now)
	from, to := ch.cursor(t.slice.n)
	if err := t.cfg.Entries[ch.port].Run(ch.batch, from, to); err != nil {
		t.fail(err)
		return Status{Worked: true}
	}
	ch.advance(to)
	t.slice.took(to-from, t.cfg.Now()-now)
	return Status{Worked: true}
}

// element handles what is not a batch.
func (t *Task) element(ch *channel, now int64) {
	switch e := ch.popped; e.Kind {
	case element.Watermark:
		if at, ok := t.gate.watermark(ch, e.Time); ok {
			t.check(t.cfg.Entries[ch.port].Watermark(at))
		}
	case element.Barrier:
		t.observe("barrier")
		t.apply(t.barriers.Barrier(ch.index, e.Barrier, now))
	case element.CancelMarker:
		t.observe("cancel")
		t.apply(t.barriers.Cancel(ch.index, e.Barrier.ID))
	case element.EndOfInput:
		// The watermark comes first: the end may complete an alignment, and then
		// nothing may be emitted until the snapshot is taken.
		if at, ok := t.gate.end(ch); ok {
			t.check(t.cfg.Entries[ch.port].Watermark(at))
		}
		if t.phase < closing {
			t.observe("end-of-input")
			t.apply(t.barriers.EndOfInput(ch.index, now))
		}
	default:
		panic(fmt.Sprintf("task: channel from %v delivered an element of kind %v", ch.from, e.Kind))
	}
}

// fire fires a burst of the timers that are due, and says when the next one is.
func (t *Task) fire(now int64) (fired bool, next int64) {
	for _, tm := range t.timers {
		at, ok := tm.NextTimer()
		if ok && at <= now {
			t.doing.set(FiringTimers, tm.at, now)
			if _, err := tm.FireTimers(now, t.slice.n); err != nil {
				t.fail(err)
				return true, 0
			}
			fired = true
			at, ok = tm.NextTimer()
		}
		if ok && (next == 0 || at < next) {
			next = at
		}
	}
	return fired, next
}

// flush pushes what stands in the edges, and says whether that was all.
func (t *Task) flush(partial bool) bool {
	all := true
	for _, e := range t.cfg.Edges {
		if !e.Flush(partial) {
			all = false
		}
	}
	return all
}

// flushInTime sends what has waited in a batch for too long.
func (t *Task) flushInTime(now int64) {
	if now-t.flushed >= int64(t.opt.BufferTimeout) {
		t.flushed = now
		t.flush(true)
	}
}

func (t *Task) throttled() bool {
	return slices.ContainsFunc(t.throttles, operator.Throttle.Full)
}

func (t *Task) emit(e element.Element) {
	if t.endSent {
		return
	}
	for _, out := range t.cfg.Edges {
		out.Emit(e)
	}
}

func (t *Task) observe(event string) {
	if t.cfg.Observe != nil {
		t.cfg.Observe(t.barriers.State(), event)
	}
}

// check ends the attempt if err is one.
func (t *Task) check(err error) {
	if err != nil {
		t.fail(err)
	}
}

// waits is the Status of a subtask that nothing but mail and room in a channel
// can help.
func (t *Task) waits(what waiting) Status {
	t.waitFor = what
	switch what {
	case forPrepare:
		t.doing.set(Preparing, 0, t.preparing.since)
	case forOpen:
		t.doing.set(Opening, 0, t.since)
	case forClose:
		t.doing.set(Closing, 0, t.since)
	default:
		t.doing.set(Idle, 0, t.cfg.Now())
	}
	return Status{}
}
