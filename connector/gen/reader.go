package gen

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/staunchdev/staunch/connector"
)

// reader makes the records of its splits in turn.
type reader[T any] struct {
	make  func(int, int64) T
	pace  *pace // nil: as fast as can be
	ready chan struct{}
	timer *time.Timer

	splits []*split
	turn   int
}

type split struct {
	id   string
	n    int
	next int64
	end  int64 // -1: none
	due  schedule
}

// leastWait keeps a high rate from waking the subtask for each record.
const leastWait = time.Millisecond

// Add implements connector.Reader.
func (r *reader[T]) Add(s connector.Split) error {
	n, err := strconv.Atoi(s.ID)
	if err != nil || n < 0 || s.Next.N < 0 {
		return fmt.Errorf("gen: no split of this source: %q at offset %d", s.ID, s.Next.N)
	}
	in := &split{id: s.ID, n: n, next: s.Next.N, end: -1}
	if s.End != nil {
		in.end = s.End.N
	}
	if r.pace != nil {
		in.due = r.pace.begin(int64(n)%r.pace.splits, time.Now())
	}
	r.splits = append(r.splits, in)
	r.signal()
	return nil
}

// Poll implements connector.Reader.
func (r *reader[T]) Poll(b *connector.Batch[T], max int) (string, connector.Offset, error) {
	var now time.Time
	if r.pace != nil {
		now = time.Now()
	}
	wait := time.Duration(-1)
	for range len(r.splits) {
		if r.turn >= len(r.splits) {
			r.turn = 0
		}
		in := r.splits[r.turn]
		n := int64(max)
		if in.end >= 0 {
			n = min(n, in.end-in.next)
		}
		if r.pace != nil && n > 0 {
			due, w := r.pace.due(&in.due, now)
			if due <= 0 {
				if wait < 0 || w < wait {
					wait = w
				}
				r.turn++
				continue
			}
			n = min(n, due)
			r.pace.take(&in.due, n)
		}
		for range n {
			b.Values = append(b.Values, r.make(in.n, in.next))
			in.next++
		}
		r.signal()
		if in.end >= 0 && in.next >= in.end {
			r.splits = append(r.splits[:r.turn], r.splits[r.turn+1:]...)
			return in.id, connector.Offset{N: in.next}, io.EOF
		}
		r.turn++
		return in.id, connector.Offset{N: in.next}, nil
	}
	if wait >= 0 {
		r.wakeIn(wait)
	}
	return "", connector.Offset{}, connector.ErrEmpty
}

// wakeIn signals when the next record is due.
func (r *reader[T]) wakeIn(d time.Duration) {
	d = max(d, leastWait)
	if r.timer == nil {
		r.timer = time.AfterFunc(d, r.signal)
		return
	}
	r.timer.Reset(d)
}

func (r *reader[T]) signal() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Available implements connector.Reader.
func (r *reader[T]) Available() <-chan struct{} { return r.ready }

// Close implements connector.Reader.
func (r *reader[T]) Close() error {
	if r.timer != nil {
		r.timer.Stop()
	}
	return nil
}
