// Package gen is a source of made-up records. Record i of split s is a pure
// function of s and i, so the source is replayable and needs no input.
package gen

import (
	"context"
	"errors"
	"strconv"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/connector"
)

// Source makes record i of split s by Make(s, i), which must be a pure
// function: for random records seed a generator with s and i.
type Source[T any] struct {
	Make   func(split int, i int64) T
	Count  int64 // of all splits together; 0: endless
	Rate   int64 // records a second of all splits together; 0: as fast as can be
	Splits int   // 0: 1
}

// Spec implements connector.Source.
func (s *Source[T]) Spec() connector.SourceSpec {
	return connector.SourceSpec{Replayable: true, Bounded: s.Count > 0, System: "generator"}
}

// Enumerator implements connector.Source.
func (s *Source[T]) Enumerator(context.Context, connector.Instance) (connector.Enumerator, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &enumerator{count: s.Count, splits: s.splits()}, nil
}

// Reader implements connector.Source.
func (s *Source[T]) Reader(context.Context, connector.Instance) (connector.Reader[T], error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	r := &reader[T]{make: s.Make, ready: make(chan struct{}, 1)}
	if s.Rate > 0 {
		r.pace = &pace{rate: s.Rate, splits: int64(s.splits())}
	}
	return r, nil
}

func (s *Source[T]) check() error {
	switch {
	case s.Make == nil:
		return errors.New("gen: Make is nil")
	case s.Count < 0 || s.Rate < 0 || s.Splits < 0:
		return errors.New("gen: Count, Rate and Splits must not be negative")
	}
	return nil
}

func (s *Source[T]) splits() int { return max(s.Splits, 1) }

// enumerator returns all splits at once.
type enumerator struct {
	count    int64
	splits   int
	returned int // splits below this were returned
}

// Discover implements connector.Enumerator. The first splits get what is left
// of Count over Splits.
func (e *enumerator) Discover(context.Context) ([]connector.Split, bool, error) {
	var found []connector.Split
	for ; e.returned < e.splits; e.returned++ {
		s := connector.Split{ID: strconv.Itoa(e.returned), Weight: 1}
		if e.count > 0 {
			n := e.count / int64(e.splits)
			if int64(e.returned) < e.count%int64(e.splits) {
				n++
			}
			s.End = &connector.Offset{N: n}
			s.Weight = max(n, 1)
		}
		found = append(found, s)
	}
	return found, false, nil
}

// Snapshot implements connector.Enumerator.
func (e *enumerator) Snapshot() ([]byte, error) { return cbor.Marshal(e.returned) }

// Restore implements connector.Enumerator.
func (e *enumerator) Restore(b []byte) error {
	e.returned = 0
	if len(b) == 0 {
		return nil
	}
	return cbor.Unmarshal(b, &e.returned)
}

// Close implements connector.Enumerator.
func (e *enumerator) Close() error { return nil }
