package task

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Activity is what a subtask is doing.
type Activity uint8

const (
	Idle         Activity = iota // waiting for input, room or mail
	Opening                      // an operator's Open
	Processing                   // a slice is in the chain
	FiringTimers                 // an operator's timers
	Preparing                    // waiting for the sinks' Prepare
	Syncing                      // an operator's sync phase
	Writing                      // an operator's snapshot is written inline
	Notifying                    // an operator is told of a checkpoint's end
	Finishing                    // an operator's Finish
	Closing                      // an operator's Close, or waiting for the executor
)

var activityNames = [...]string{"idle", "opening", "processing", "firing timers", "preparing", "in the sync phase", "writing a snapshot", "notifying", "finishing", "closing"}

func (a Activity) String() string { return activityNames[a] }

// Doing is what a subtask does, in which operator, since when. While a slice
// is in the chain the operator is the chain's head.
type Doing struct {
	Activity Activity
	Operator string
	Since    int64 // Unix nanoseconds, to the microsecond
}

func (d Doing) String() string {
	if d.Activity == Idle {
		return "idle"
	}
	return fmt.Sprintf("%v operator %q", d.Activity, d.Operator)
}

// doing is one word, so that a watchdog may read it at any time: 8 bits of
// activity, 8 of the operator's place, 48 of microseconds since base.
type doing struct {
	word atomic.Uint64
	base int64
}

func (d *doing) init(now int64) { d.base = now }

func (d *doing) set(a Activity, op int, now int64) {
	since := max(now-d.base, 0) / int64(time.Microsecond)
	d.word.Store(uint64(a)<<56 | uint64(min(op, 255))<<48 | uint64(since)&(1<<48-1))
}

func (d *doing) get() (a Activity, op int, since int64) {
	w := d.word.Load()
	return Activity(w >> 56), int(w >> 48 & 255), d.base + int64(w&(1<<48-1))*int64(time.Microsecond)
}

// Doing says what the subtask does at this moment.
func (t *Task) Doing() Doing {
	a, op, since := t.doing.get()
	return Doing{a, t.cfg.Ops[min(op, len(t.cfg.Ops)-1)].Name, since}
}
