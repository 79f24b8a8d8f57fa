package gen

import (
	"math/bits"
	"time"
)

// burst is how far behind its due time a split may be and still catch up: what
// a timer is late. A longer pause (backpressure, a restart) is not made up for.
const burst = 100 * time.Millisecond

// pace gives each of splits an equal share of rate, one record at a time in
// turn: the k-th record of split s since its start is due (k*splits+s)/rate
// seconds after it.
type pace struct {
	rate, splits int64
}

// schedule is the pace of one split.
type schedule struct {
	start time.Time
	made  int64 // records since start
}

// begin starts a split now, whatever its offset, so that a restart does not
// make up for the time that was lost.
func (p *pace) begin(s int64, now time.Time) schedule {
	return schedule{start: now.Add(p.after(s))}
}

// after is how long n turns take.
func (p *pace) after(turns int64) time.Duration {
	hi, lo := bits.Mul64(uint64(turns), uint64(time.Second))
	q, _ := bits.Div64(hi, lo, uint64(p.rate))
	return time.Duration(q)
}

// due is how many records may be made at now; if none, wait is how long until
// the next.
func (p *pace) due(s *schedule, now time.Time) (n int64, wait time.Duration) {
	late := now.Sub(s.start) - p.after(s.made*p.splits)
	if late < 0 {
		return 0, -late
	}
	if late > burst {
		s.start = s.start.Add(late - burst)
	}
	hi, lo := bits.Mul64(uint64(now.Sub(s.start)), uint64(p.rate))
	q, _ := bits.Div64(hi, lo, uint64(time.Second)*uint64(p.splits))
	// The record that is due at the start is one more than the time passed gives.
	if n = int64(q) + 1 - s.made; n > 0 {
		return n, 0
	}
	return 0, p.after((s.made)*p.splits) - now.Sub(s.start) + 1
}

// take notes n records as made. Whole seconds are taken off the count, so that
// the products above stay in range however long the job runs.
func (p *pace) take(s *schedule, n int64) {
	s.made += n
	for s.made >= p.rate {
		s.made -= p.rate
		s.start = s.start.Add(time.Duration(p.splits) * time.Second)
	}
}
