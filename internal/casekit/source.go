package casekit

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/staunchdev/staunch/connector"
)

// Source is a scripted, replayable source. The record at each offset of each
// split is a function of the two, so that any offset can be read again, and an
// oracle can be computed from the same function; what a test scripts is how
// many records there are yet, and when a split ends.
type Source[T any] struct {
	At     func(split int, off int64) T
	Finite bool // as its spec says
	Gate   Gate // passed by each Poll that has something to return

	mu     sync.Mutex
	splits []scripted
	wakes  []chan struct{}
}

type scripted struct {
	have   int64 // records that exist
	ended  bool
	polled int64   // records handed out, replays included
	starts []int64 // where readers were told to begin, one an attempt
}

// NewSource returns a source of so many empty splits.
func NewSource[T any](splits int, at func(split int, off int64) T) *Source[T] {
	return &Source[T]{At: at, splits: make([]scripted, splits)}
}

// Grow makes n more records of a split available.
func (s *Source[T]) Grow(split int, n int64) {
	s.change(func() { s.splits[split].have += n })
}

// End ends every split behind the records that exist.
func (s *Source[T]) End() {
	s.change(func() {
		for i := range s.splits {
			s.splits[i].ended = true
		}
	})
}

func (s *Source[T]) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	for _, w := range s.wakes {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// Polled is how many records of a split were handed out, replays included.
func (s *Source[T]) Polled(split int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.splits[split].polled
}

// Starts are the offsets at which readers of a split were told to begin.
func (s *Source[T]) Starts(split int) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.splits[split].starts)
}

// All are the records that exist, split by split: the input of an oracle.
func (s *Source[T]) All() (all []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, sp := range s.splits {
		for off := range sp.have {
			all = append(all, s.At(i, off))
		}
	}
	return all
}

// Spec implements connector.Source.
func (s *Source[T]) Spec() connector.SourceSpec {
	return connector.SourceSpec{Replayable: true, Bounded: s.Finite, System: "script"}
}

// Enumerator implements connector.Source.
func (s *Source[T]) Enumerator(context.Context, connector.Instance) (connector.Enumerator, error) {
	return &enumerator{splits: len(s.splits)}, nil
}

// enumerator returns all splits, once in the life of a job.
type enumerator struct {
	splits int
	told   bool
}

func (e *enumerator) Discover(context.Context) (found []connector.Split, more bool, err error) {
	if e.told {
		return nil, false, nil
	}
	e.told = true
	for i := range e.splits {
		found = append(found, connector.Split{ID: strconv.Itoa(i)})
	}
	return found, false, nil
}

func (e *enumerator) Snapshot() ([]byte, error) { return []byte{1}, nil }
func (e *enumerator) Restore(b []byte) error    { e.told = len(b) > 0; return nil }
func (e *enumerator) Close() error              { return nil }

// Reader implements connector.Source.
func (s *Source[T]) Reader(context.Context, connector.Instance) (connector.Reader[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &reader[T]{s: s, wake: make(chan struct{}, 1)}
	s.wakes = append(s.wakes, r.wake)
	return r, nil
}

type reader[T any] struct {
	s      *Source[T]
	wake   chan struct{}
	splits []position
	turn   int
}

type position struct {
	split int
	next  int64
}

func (r *reader[T]) Add(sp connector.Split) error {
	i, err := strconv.Atoi(sp.ID)
	if err != nil {
		return fmt.Errorf("scripted source: split %q: %w", sp.ID, err)
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.splits[i].starts = append(r.s.splits[i].starts, sp.Next.N)
	r.splits = append(r.splits, position{i, sp.Next.N})
	return nil
}

func (r *reader[T]) Poll(b *connector.Batch[T], most int) (string, connector.Offset, error) {
	if !r.ready() {
		return "", connector.Offset{}, connector.ErrEmpty
	}
	r.s.Gate.Pass()
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for range r.splits {
		r.turn = (r.turn + 1) % len(r.splits)
		p := &r.splits[r.turn]
		sp := &r.s.splits[p.split]
		n := min(int64(most), sp.have-p.next)
		if n == 0 && !sp.ended {
			continue
		}
		for range n {
			b.Values = append(b.Values, r.s.At(p.split, p.next))
			p.next++
		}
		sp.polled += n
		id, next := strconv.Itoa(p.split), connector.Offset{N: p.next}
		if sp.ended && p.next == sp.have {
			r.splits = slices.Delete(r.splits, r.turn, r.turn+1)
			return id, next, io.EOF
		}
		return id, next, nil
	}
	return "", connector.Offset{}, connector.ErrEmpty
}

func (r *reader[T]) ready() bool {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return slices.ContainsFunc(r.splits, func(p position) bool {
		sp := r.s.splits[p.split]
		return sp.ended || sp.have > p.next
	})
}

func (r *reader[T]) Available() <-chan struct{} { return r.wake }

func (r *reader[T]) Close() error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.wakes = slices.DeleteFunc(r.s.wakes, func(w chan struct{}) bool { return w == r.wake })
	return nil
}
