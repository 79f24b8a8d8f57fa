package task

import "time"

// slicer finds how many records make a slice of about the time wanted. It
// begins with one, so that a slow function is not met by a thousand at once.
type slicer struct {
	n, most int
	time    int64
}

func (s *slicer) init(most int, d time.Duration) { s.n, s.most, s.time = 1, most, int64(d) }

// took says how long a slice of n records took.
func (s *slicer) took(n int, nanos int64) {
	switch {
	case n == 0: // a source has read ahead
	case nanos > 2*s.time:
		s.n = max(1, int(int64(n)*s.time/nanos))
	case nanos < s.time/2 && n >= s.n:
		s.n = min(2*s.n, s.most)
	}
}
