package task

import (
	"context"
	"time"
)

// Run steps the subtask until it is closed. The end of ctx kills it.
func (t *Task) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, t.Kill)()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		st := t.Step()
		if !st.Worked && !st.Closed {
			// Whoever wakes the subtask after this store is heard; whoever did before
			// has left something that the next Step finds.
			t.parked.Store(true)
			st = t.Step()
		}
		if st.Closed {
			return
		}
		if !st.Worked {
			t.park(st, timer)
		}
		t.parked.Store(false)
	}
}

// park waits until there may be something to do.
func (t *Task) park(st Status, timer *time.Timer) {
	began := t.cfg.Now()
	var at <-chan time.Time
	if st.At != 0 {
		timer.Reset(max(time.Duration(st.At-began), 0))
		at = timer.C
	}
	done := t.ctx.Done()
	if t.phase >= closing {
		done = nil // known already
	}
	select {
	case <-t.wake:
	case <-st.Available:
	case <-at:
	case <-done:
	}
	t.counters.waited(t.waitFor, t.cfg.Now()-began)
}

// Wake makes Run step again.
func (t *Task) Wake() {
	if t.parked.Load() {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}
