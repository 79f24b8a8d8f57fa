package sim

import (
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statestore"
)

// alarmed is what a keyed operator adds to its state for alarms.
type alarmed struct {
	table   *statestore.Table
	asked   int64 // when the subtask last asked for the next timer
	limited bool  // the last burst of firings left some behind
}

func alarmDecl() statestore.Decl {
	return statestore.Decl{Name: "alarm", Kind: checkpoint.TimerState, Domain: statestore.ProcessingTime}
}

func (c *alarmed) Set(at int64)            { c.table.TimerSet(at) }
func (c *alarmed) Clear()                  { c.table.Delete() }
func (c *alarmed) At() (at int64, ok bool) { return c.table.TimerAt() }

// overdue says whether the timer of the key in hand should have fired: the
// subtask fires what is due before it takes more records.
func (c *alarmed) overdue() bool {
	at, ok := c.At()
	return ok && at <= c.asked && !c.limited
}

// NextTimer implements operator.Timers.
func (o *keyed[In, Out]) NextTimer() (at int64, ok bool) {
	if o.ring == nil {
		return 0, false
	}
	o.alarm.asked = o.rt.Now()
	return o.store.NextTimer(statestore.ProcessingTime)
}

// FireTimers implements operator.Timers.
func (o *keyed[In, Out]) FireTimers(now int64, max int) (fired int, err error) {
	if o.rt.Restore != nil && o.rt.Restore.Finished {
		o.parts.w.fail("%v: operator %s had ended before the checkpoint that it was restored from, and fires timers", o.parts.p, o.name)
	}
	for ; fired < max; fired++ {
		_, at, ok := o.store.Due(statestore.ProcessingTime, now)
		if !ok {
			break
		}
		a, _ := statestore.Get[account](o.state)
		a, out := o.ring(a, at)
		statestore.Set(o.state, a)
		o.out.Emit(out)
	}
	o.alarm.limited = fired == max
	o.store.EndKey()
	return fired, o.out.Flush()
}
