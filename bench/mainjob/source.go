package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/staunchdev/staunch/connector"
)

// source reads an input. Each of its splits has a share of the keys, reads each
// of them once and then random records without end.
type source[K comparable] struct {
	in     input[K]
	splits int
	late   *latecomer // nil: nobody is late
	thread *threadMeter
}

// latecomer makes the last split stand still once, when it is asked to: the
// barrier that its subtask was to send is late by so much.
type latecomer struct {
	by    time.Duration
	asked atomic.Bool
	began chan struct{}
}

func (s *source[K]) Spec() connector.SourceSpec {
	return connector.SourceSpec{Replayable: true, System: "preloaded records"}
}

func (s *source[K]) Enumerator(context.Context, connector.Instance) (connector.Enumerator, error) {
	return &enumerator{splits: s.splits}, nil
}

func (s *source[K]) Reader(context.Context, connector.Instance) (connector.Reader[K], error) {
	return &reader[K]{source: s}, nil
}

type enumerator struct {
	splits int
	found  bool
}

func (e *enumerator) Discover(context.Context) (out []connector.Split, more bool, err error) {
	if e.found {
		return nil, false, nil
	}
	e.found = true
	for i := range e.splits {
		out = append(out, connector.Split{ID: strconv.Itoa(i), Weight: 1})
	}
	return out, false, nil
}

func (e *enumerator) Snapshot() ([]byte, error) { return []byte{1}, nil }
func (e *enumerator) Restore(b []byte) error    { e.found = len(b) > 0; return nil }
func (e *enumerator) Close() error              { return nil }

// reader reads one split.
type reader[K comparable] struct {
	*source[K]
	id   string
	last bool
	each []K // keys of this split not yet read
	at   int // in loop
	n    int64
}

func (r *reader[K]) Add(s connector.Split) error {
	if r.id != "" {
		return fmt.Errorf("split %s beside split %s: one a subtask was meant", s.ID, r.id)
	}
	i, err := strconv.Atoi(s.ID)
	if err != nil || s.Next.N != 0 {
		return fmt.Errorf("split %s at %d", s.ID, s.Next.N)
	}
	n := len(r.in.each)
	r.id, r.last = s.ID, i == r.splits-1
	r.each, r.at = r.in.each[n*i/r.splits:n*(i+1)/r.splits], len(r.in.loop)*i/r.splits
	return nil
}

func (r *reader[K]) Poll(b *connector.Batch[K], max int) (string, connector.Offset, error) {
	if r.id == "" {
		return "", connector.Offset{}, connector.ErrEmpty
	}
	if r.late != nil && r.last && r.late.asked.CompareAndSwap(true, false) {
		r.late.began <- struct{}{}
		time.Sleep(r.late.by)
	}
	var part []K
	if len(r.each) > 0 {
		n := min(max, len(r.each))
		part, r.each = r.each[:n], r.each[n:]
	} else {
		n := min(max, len(r.in.loop)-r.at)
		part, r.at = r.in.loop[r.at:r.at+n], r.at+n
		if r.at == len(r.in.loop) {
			r.at = 0
		}
	}
	b.Values = append(b.Values, part...)
	r.n += int64(len(part))
	r.thread.polled(r.n)
	return r.id, connector.Offset{N: r.n}, nil
}

func (r *reader[K]) Available() <-chan struct{} { return nil }
func (r *reader[K]) Close() error               { return nil }
