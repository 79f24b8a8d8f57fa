package task

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
)

// alarm has timers, each of which counts when it fires.
type alarm struct {
	counter
	due   []int64 // ascending
	fired []int64
	order []string
}

func (a *alarm) NextTimer() (int64, bool) {
	if len(a.due) == 0 {
		return 0, false
	}
	return a.due[0], true
}

func (a *alarm) FireTimers(now int64, max int) (fired int, err error) {
	for ; fired < max && len(a.due) > 0 && a.due[0] <= now; fired++ {
		a.fired = append(a.fired, a.due[0])
		a.due = a.due[1:]
	}
	a.order = append(a.order, "timers")
	return fired, nil
}

func (a *alarm) Process(r *element.Run[int]) error {
	a.order = append(a.order, "records")
	return a.counter.Process(r)
}

func TestTimersFireWhenDueAndNotAtTheEndOfInput(t *testing.T) {
	a := &alarm{counter: counter{name: "alarm"}}
	w, task, rings := lone(t, 1, 8, Options{}, Op{Name: "alarm", Op: a})
	a.due = []int64{50, 60, 1000}
	if st := task.Step(); st.Worked || st.At != 50 {
		t.Fatalf("status %+v", st)
	}
	w.now = 70
	w.settle()
	if !slices.Equal(a.fired, []int64{50, 60}) {
		t.Fatalf("fired %v", a.fired)
	}
	rings[0].Push(element.Element{Kind: element.EndOfInput})
	w.settle()
	w.now = 2000
	w.settle()
	if len(a.fired) != 2 || len(w.ended) != 1 {
		t.Errorf("fired %v, ended %v", a.fired, w.ended)
	}
}

// What had ended before the checkpoint starts ended: what it had left unfired
// must not come behind its end.
func TestTimersOfAnEndedOperatorDoNotFire(t *testing.T) {
	a := &alarm{counter: counter{name: "alarm"}, due: []int64{1}}
	w, _, _ := lone(t, 1, 8, Options{}, Op{Name: "alarm", Op: a, Restore: &operator.Restore{Finished: true}})
	w.now = 2
	w.settle()
	if len(a.fired) > 0 {
		t.Errorf("fired %v", a.fired)
	}
}

func TestTimerBurstsAndSlicesTakeTurns(t *testing.T) {
	a := &alarm{counter: counter{name: "alarm"}}
	w, task, rings := lone(t, 1, 8, Options{SliceRecords: 2}, Op{Name: "alarm", Op: a})
	task.slice.n = 2
	a.due = []int64{1, 1, 1, 1, 1, 1}
	rings[0].Push(run(6))
	w.settle()
	want := []string{"timers", "records", "timers", "records", "timers", "records"}
	if !slices.Equal(a.order, want) {
		t.Errorf("order %v", a.order)
	}
}

func TestRunKeepsTheRateWithoutSpinning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, shape{sources: 2, keyed: 2, rate: 1000})
		for _, r := range p.readers {
			r.put(1, 100_000)
		}
		_, join := goLive(t.Context(), p)
		time.Sleep(5 * time.Second) // of the bubble's clock
		synctest.Wait()
		n := len(p.counters[0].sum) + len(p.counters[1].sum)
		if n < 4900 || n > 5100 {
			t.Errorf("%d records in 5 s at 1000 a second", n)
		}
		for _, task := range p.tasks {
			task.Kill()
		}
		join()
		if c := p.keyed[0].Counters(); time.Duration(c.IdleNanos) < 4*time.Second {
			t.Errorf("idle for %v", time.Duration(c.IdleNanos))
		}
	})
}
