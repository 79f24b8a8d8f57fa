package operator

import (
	"math/bits"
	"time"
)

// rate spreads records evenly: record k is due at start + k*period/records. It
// keeps whole numbers only, so that it does not drift.
type rate struct {
	records uint64 // so many, 0: as many as there are,
	period  uint64 // in so many nanoseconds
	start   int64  // when record 0 of the period in progress is due
	taken   uint64 // records of that period already taken, below records
	begun   bool
}

const (
	// What was missed for longer than rateSlack is not made up, so that no burst
	// follows a pause.
	rateSlack = int64(50 * time.Millisecond)
	// rateNap is how long a fast source sleeps at least between two polls.
	rateNap = int64(time.Millisecond)
)

// newRate gives each of parallelism subtasks its share of perSecond.
func newRate(perSecond int64, parallelism int) rate {
	if perSecond <= 0 {
		return rate{}
	}
	return rate{records: uint64(perSecond), period: uint64(max(parallelism, 1)) * uint64(time.Second)}
}

// due is when record k of the period is due.
func (r *rate) due(k uint64) int64 {
	hi, lo := bits.Mul64(k, r.period)
	q, _ := bits.Div64(hi, lo, r.records) // below period, as k is below records
	return r.start + int64(q)
}

// allow says how many records may be taken at now, at most limit; none: not
// before when.
func (r *rate) allow(now int64, limit int) (n int, when int64) {
	if r.records == 0 {
		return limit, 0
	}
	next := r.due(r.taken)
	if !r.begun || next < now-rateSlack {
		r.begun, r.start, r.taken, next = true, now, 0, now
	}
	if now < next {
		return 0, max(next, now+rateNap)
	}
	hi, lo := bits.Mul64(uint64(now-r.start), r.records)
	q, _ := bits.Div64(hi, lo, r.period) // now-start is at most a period and the slack
	if q < r.taken {                     // rounded down below a record that is due
		q = r.taken
	}
	return int(min(q+1-r.taken, uint64(limit))), 0
}

// take counts records that were taken.
func (r *rate) take(n int) {
	if r.records == 0 {
		return
	}
	r.taken += uint64(n)
	for r.taken >= r.records {
		r.taken -= r.records
		r.start += int64(r.period)
	}
}
