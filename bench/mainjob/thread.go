package main

import (
	"runtime"
	"sync/atomic"
)

// threadMeter measures the processor time of the thread that runs a source, and
// with it all that is chained to the source. On a machine that others use too,
// it says what the subtask had to do when the clock says how long it waited.
type threadMeter struct {
	on    bool
	polls int
	nanos atomic.Int64
	n     atomic.Int64
}

// polled is called by the source after each poll, with the records read so far.
func (m *threadMeter) polled(n int64) {
	if !m.on {
		return
	}
	if m.polls == 0 {
		runtime.LockOSThread()
	}
	if m.polls++; m.polls%64 == 0 {
		m.nanos.Store(int64(threadTime()))
		m.n.Store(n)
	}
}

func (m *threadMeter) read() (nanos, records int64) { return m.nanos.Load(), m.n.Load() }
