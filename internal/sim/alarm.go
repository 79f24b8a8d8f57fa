package sim

import (
	"cmp"
	"fmt"
	"slices"
)

// Some jobs keep an alarm by key: a processing-time timer that some orders set
// and others clear. When it fires, a line says so. An alarm is named by the
// number of the order that has set it.
//
// What fires when depends on the clock, so the oracle does not say which alarms
// there are. It says that what is there hangs together: of each key, what the
// lines say is set follows from the orders and from the alarms that fired before.

// Clock is the timer of the key in hand.
type Clock interface {
	Set(at int64)
	Clear()
	At() (at int64, ok bool)
}

// alarmAt says what the n-th order of a key does: it sets the alarm, in place of
// one that is set, or clears it.
func alarmAt(n uint32) (sets, clears bool) {
	return n%6 == 1 || n%6 == 3, n%6 == 5
}

// Alarms says whether the job is to keep alarms. One that does not ask keeps none.
func (x *Parts) Alarms() bool {
	x.w.keepsAlarms = x.w.alarms
	return x.w.alarms
}

// Tend sees to the alarm of a key behind Enter.
func (x *Parts) Tend(a Account, l Line, c Clock) (Account, Line) {
	at, set := c.At()
	if set != (a.Alarm != 0) || set && at != a.Due {
		x.w.fail("LOST: the timer of key %d is set: %v, for %d; its account, in the same snapshots, says alarm %d, for %d", l.Order.Key, set, at, a.Alarm, a.Due)
	}
	l.Armed = a.Alarm
	switch sets, clears := alarmAt(l.N); {
	case sets:
		a.Alarm, a.Cause, a.Due = l.N, l.Order, x.p.Now()+1+x.w.rng.Int64N(2*x.w.span>>x.w.rng.IntN(6))
		c.Set(a.Due)
	case clears:
		a.Alarm, a.Due = 0, 0
		c.Clear()
	}
	return a, l
}

// Ring says that the timer of a key fires which was set for at.
func (x *Parts) Ring(a Account, at int64) (Account, Line) {
	if a.Alarm == 0 || at != a.Due || at > x.p.Now() {
		x.w.fail("a timer of key %d fires that was set for %d; its account says alarm %d, for %d", a.Cause.Key, at, a.Alarm, a.Due)
	}
	x.w.result.Alarms++
	l := Line{Order: a.Cause, N: a.N, Balance: a.Balance, Alarm: a.Alarm}
	a.Alarm, a.Due = 0, 0
	return a, l
}

// ByTimer says that no order is the cause of what is applied.
var ByTimer = order{Split: ^uint32(0)}

// AppliedOrder is the order that a line applies to what is behind.
func (l line) AppliedOrder() order {
	if l.Alarm != 0 {
		return ByTimer
	}
	return l.Order
}

// divide takes the alarms out of what is in the ledger.
func divide(ledger []line) (lines, alarms []line) {
	for _, l := range ledger {
		if l.Alarm != 0 {
			alarms = append(alarms, l)
		} else {
			lines = append(lines, l)
		}
	}
	return lines, alarms
}

// checkCauses: an alarm is of an order that sets one.
func checkCauses(in [][]order, alarms []line) error {
	for _, l := range alarms {
		o := l.Order
		if int(o.Split) >= len(in) || int(o.Pos) >= len(in[o.Split]) || in[o.Split][o.Pos] != o {
			return fmt.Errorf("alarm of order %+v, which is not of the input", o)
		}
		if sets, _ := alarmAt(l.Alarm); !sets {
			return fmt.Errorf("alarm %+v, but order %d sets none", l, l.Alarm)
		}
	}
	return nil
}

// checkAlarms follows the lines of a key in their order: an alarm fires once, in
// front of the order that replaces or clears it, and each line knows of it until
// then. Kept is false for a job without alarms.
func checkAlarms(lines, alarms []line, kept bool) error {
	if !kept {
		if len(alarms) > 0 {
			return fmt.Errorf("alarm %+v, but none is kept", alarms[0])
		}
		return nil
	}
	slices.SortFunc(alarms, func(a, b line) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.Alarm, b.Alarm)) })
	set, cause, balance := uint32(0), order{}, int64(0)
	fire := func(n uint32) error {
		for len(alarms) > 0 && alarms[0].N <= n {
			switch a := alarms[0]; {
			case a.Alarm != set || a.N != n:
				return fmt.Errorf("key %d: alarm %d fires behind order %d, where %d is set (0: none)", a.Order.Key, a.Alarm, a.N, set)
			case a.Order != cause || a.Balance != balance:
				return fmt.Errorf("key %d: alarm %+v, set by %+v, with the balance at %d", a.Order.Key, a, cause, balance)
			}
			alarms, set = alarms[1:], 0
		}
		return nil
	}
	for _, l := range lines {
		if err := fire(l.N - 1); err != nil {
			return err
		}
		if l.Armed != set {
			return fmt.Errorf("key %d: at order %d alarm %d is set, it must be %d (0: none)", l.Order.Key, l.N, l.Armed, set)
		}
		balance = l.Balance
		switch sets, clears := alarmAt(l.N); {
		case sets:
			set, cause = l.N, l.Order
		case clears:
			set = 0
		}
	}
	if len(lines) > 0 {
		if err := fire(lines[len(lines)-1].N); err != nil {
			return err
		}
	}
	if len(alarms) > 0 {
		return fmt.Errorf("key %d: alarm %d fires behind order %d, which never came", alarms[0].Order.Key, alarms[0].Alarm, alarms[0].N)
	}
	return nil
}
