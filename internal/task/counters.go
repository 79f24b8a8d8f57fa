package task

import (
	"sync/atomic"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// waiting is what a subtask waited for when a Step found nothing to do.
type waiting uint8

const (
	forInput   waiting = iota // records, timers, splits
	forRoom                   // a full channel or a sink that writes
	forPrepare                // the sinks' Prepare
	forOpen
	forMail
	forClose
)

// Counters are measurements of a subtask's life. The times are those spent
// parked in Run; all else was work.
type Counters struct {
	IdleNanos          int64 // waiting for input
	BackpressuredNanos int64 // waiting for room in a channel, or for a sink
	PreparingNanos     int64 // waiting for the sinks' Prepare
	Refused            int64 // mails of another attempt
	Barriers           checkpoint.BarrierCounters
}

type counters struct {
	idle, backpressured, preparing, refused atomic.Int64

	stale, markers, triggers, subsumed, aborted atomic.Int64
}

func (c *counters) barriers(b checkpoint.BarrierCounters) {
	c.stale.Store(b.StaleBarriers)
	c.markers.Store(b.StaleMarkers)
	c.triggers.Store(b.StaleTriggers)
	c.subsumed.Store(b.Subsumed)
	c.aborted.Store(b.Aborted)
}

func (c *counters) waited(w waiting, nanos int64) {
	switch w {
	case forInput:
		c.idle.Add(nanos)
	case forRoom:
		c.backpressured.Add(nanos)
	case forPrepare:
		c.preparing.Add(nanos)
	}
}

// Counters returns what was counted so far.
func (t *Task) Counters() Counters {
	c := &t.counters
	return Counters{
		IdleNanos: c.idle.Load(), BackpressuredNanos: c.backpressured.Load(), PreparingNanos: c.preparing.Load(),
		Refused: c.refused.Load(),
		Barriers: checkpoint.BarrierCounters{
			StaleBarriers: c.stale.Load(), StaleMarkers: c.markers.Load(), StaleTriggers: c.triggers.Load(),
			Subsumed: c.subsumed.Load(), Aborted: c.aborted.Load(),
		},
	}
}
