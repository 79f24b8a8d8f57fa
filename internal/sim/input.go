package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/staunchdev/staunch/connector"
)

// order is a record of the input. Split and Pos name it.
type order struct {
	Split  uint32
	Pos    uint32
	Key    uint32
	Amount int32
}

// input is all that the sources will ever return.
type input struct {
	sources [][]*split
	splits  []*split
	total   int
}

// split is a list of records of one source, each to be had from a time on.
type split struct {
	index   uint32
	name    string
	appears int64 // when the enumerator can find it
	from    []int64
	orders  []order
}

func newInput(r *rand.Rand, p *profile) *input {
	in := &input{sources: make([][]*split, p.sources)}
	for s := range in.sources {
		for range 1 + r.IntN(3) {
			sp := &split{index: uint32(len(in.splits)), name: fmt.Sprintf("%c%d", 'a'+s, len(in.splits))}
			if (r.IntN(2) == 0 || p.slowJournal) && s < 2 {
				sp.appears = epochStart + r.Int64N(p.span+1)
			}
			in.splits = append(in.splits, sp)
			in.sources[s] = append(in.sources[s], sp)
		}
	}
	for in.total < p.records {
		sp := in.splits[r.IntN(len(in.splits))]
		k := r.IntN(p.keys)
		if r.IntN(2) == 0 {
			k = r.IntN(2) // some keys are hot
		}
		sp.orders = append(sp.orders, order{sp.index, uint32(len(sp.orders)), uint32(k), int32(r.IntN(2000) - 500)})
		in.total++
	}
	for s, splits := range in.sources {
		span := p.span
		if s == 2 {
			span /= 8 // the bounded one ends early
		}
		for _, sp := range splits {
			at := int64(0)
			for range sp.orders {
				at += r.Int64N(2*span/int64(len(sp.orders)) + 1)
				sp.from = append(sp.from, epochStart+at)
			}
		}
	}
	return in
}

// enumerator finds the splits of one source, and knows which it has returned.
type enumerator struct {
	p     *process
	all   []*split
	known []byte // by split: 1 if it was returned
}

func (e *enumerator) Discover(context.Context) (found []connector.Split, more bool, err error) {
	e.p.yield()
	if w := e.p.w; w.happens((w.slowEnumerator + 3) / 4) {
		e.p.Sleep(context.Background(), time.Duration(w.rng.Int64N(2*int64(w.interval))))
	}
	for i, sp := range e.all {
		switch {
		case e.known[i] != 0:
		case sp.appears > e.p.w.now:
			more = true
		default:
			e.known[i] = 1
			s := connector.Split{ID: sp.name, Weight: int64(len(sp.orders) % 3)}
			if len(sp.orders)%2 == 0 {
				s.End = &connector.Offset{N: int64(len(sp.orders))}
			}
			found = append(found, s)
		}
	}
	e.p.w.tracef("%v: found %v, more %v", e.p, found, more)
	return found, more, nil
}

func (e *enumerator) Snapshot() ([]byte, error) {
	e.p.yield()
	if w := e.p.w; w.happens(w.slowEnumerator) {
		e.p.Sleep(context.Background(), time.Duration(w.rng.Int64N(3*int64(w.timeout))))
	}
	if e.p.w.happens(e.p.w.enumeratorFails) {
		return nil, errInjected
	}
	return append([]byte(nil), e.known...), nil
}

func (e *enumerator) Restore(b []byte) error {
	copy(e.known, b)
	return nil
}

func (e *enumerator) Close() error { return nil }

// reader reads the splits of one subtask, a few records at a time.
type reader struct {
	p      *process
	in     *input
	splits []*reading
	waits  bool
}

type reading struct {
	*split
	next int
}

func (r *reader) Add(s connector.Split) error {
	for _, sp := range r.in.splits {
		if sp.name == s.ID {
			r.p.w.tracef("%v: split %s is read from %d", r.p, s.ID, s.Next.N)
			r.splits = append(r.splits, &reading{sp, int(s.Next.N)})
			return nil
		}
	}
	return fmt.Errorf("there is no split %s", s.ID)
}

func (r *reader) Poll(b *connector.Batch[order], max int) (string, connector.Offset, error) {
	w := r.p.w
	w.spend(w.recordCost / 8)
	if len(r.splits) == 0 {
		return "", connector.Offset{}, connector.ErrEmpty
	}
	first := w.rng.IntN(len(r.splits))
	soon := int64(0)
	for i := range r.splits {
		at := (first + i) % len(r.splits)
		sp := r.splits[at]
		if sp.next == len(sp.orders) {
			r.splits = append(r.splits[:at:at], r.splits[at+1:]...)
			return sp.name, connector.Offset{N: int64(sp.next)}, io.EOF
		}
		if sp.from[sp.next] > w.now {
			if soon == 0 || sp.from[sp.next] < soon {
				soon = sp.from[sp.next]
			}
			continue
		}
		for n := 1 + w.rng.IntN(6); n > 0 && max > 0 && sp.next < len(sp.orders) && sp.from[sp.next] <= w.now; n-- {
			b.Values = append(b.Values, sp.orders[sp.next])
			sp.next++
			max--
		}
		return sp.name, connector.Offset{N: int64(sp.next)}, nil
	}
	r.wakeAt(soon)
	return "", connector.Offset{}, connector.ErrEmpty
}

// wakeAt has the subtask stepped again when there is more.
func (r *reader) wakeAt(at int64) {
	if r.waits {
		return
	}
	r.waits = true
	r.p.w.timers.add(&timer{p: r.p, at: at, f: func() { r.waits = false }})
}

func (r *reader) Available() <-chan struct{} { return nil }
func (r *reader) Close() error               { return nil }

// spend lets time pass inside user code.
func (w *world) spend(mean int64) {
	if mean > 0 {
		w.now += w.rng.Int64N(2 * mean)
	}
}
