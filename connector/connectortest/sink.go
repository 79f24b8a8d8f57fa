package connectortest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/staunchdev/staunch/connector"
)

// Sink crashes a sink at every call, commits twice, loses commits, lets epochs
// overlap, and runs two attempts at once.
//
// newSink opens the same system anew, as a new process would. make(i) is a
// record that prints (by %+v) differently for each i; for an Idempotent sink it
// has a key of its own. read returns all that is visible in the system, which
// nothing else writes to.
func Sink[T any](t *testing.T, newSink func(t *testing.T) connector.Sink[T], make func(i int) T, read func(t *testing.T) []T) {
	s := newSystem(func() connector.Sink[T] { return newSink(t) }, make, func() []T { return read(t) })
	defer s.close()
	for _, c := range s.checks() {
		if !t.Run(c.name, func(t *testing.T) {
			if err := c.run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}) {
			return // what is visible now would only confuse the other checks
		}
	}
}

// runSize is how many records a run may make.
const runSize = 1 << 12

// system is the system behind the sink, with all that was ever made for it.
type system[T any] struct {
	open    func() connector.Sink[T]
	make    func(int) T
	read    func() []T
	kind    connector.SinkKind
	fenced  bool
	runs    int
	index   map[string]int // of a record, by how it prints
	dropped []connector.Writer[T]
}

func newSystem[T any](open func() connector.Sink[T], make func(int) T, read func() []T) *system[T] {
	spec := open().Spec()
	return &system[T]{open: open, make: make, read: read, kind: spec.Kind, fenced: spec.Fenced, index: map[string]int{}}
}

// check is one property of the suite.
type check struct {
	name string
	run  func(context.Context) error
}

func (s *system[T]) checks() []check {
	checks := []check{
		{"spec", s.checkSpec},
		{"crash at every call", func(ctx context.Context) error { return s.crashes(ctx, false) }},
		{"restart at every call", func(ctx context.Context) error { return s.crashes(ctx, true) }},
	}
	switch {
	case s.kind == connector.Transactional:
		checks = append(checks,
			check{"zombie of an older generation", func(ctx context.Context) error { return s.zombie(ctx, instance{2, 1}) }},
			check{"zombie of an older attempt", func(ctx context.Context) error { return s.zombie(ctx, instance{1, 2}) }},
			check{"other operators are left alone", s.neighbours})
	case s.kind == connector.Idempotent && s.fenced:
		checks = append(checks, check{"zombie is fenced", s.fencedZombie})
	}
	return checks
}

// checkSpec checks that the kind and the methods agree.
func (s *system[T]) checkSpec(context.Context) error {
	sink := s.open()
	_, committer := sink.(connector.Committer)
	_, fencer := sink.(connector.Fencer)
	spec := sink.Spec()
	switch {
	case spec.Kind == connector.Transactional && !committer:
		return errors.New("a Transactional sink must implement connector.Committer")
	case spec.Kind == connector.Idempotent && len(spec.Key) == 0:
		return errors.New("an Idempotent sink must name the key it overwrites by")
	case spec.Fenced && !fencer:
		return errors.New("a Fenced sink must implement connector.Fencer")
	}
	return nil
}

// record makes record i and remembers it.
func (s *system[T]) record(i int) T {
	v := s.make(i)
	s.index[fmt.Sprintf("%+v", v)] = i
	return v
}

// visible counts the visible records of a run.
func (s *system[T]) visible(base int) (map[int]int, error) {
	got := map[int]int{}
	for _, v := range s.read() {
		i, ok := s.index[fmt.Sprintf("%+v", v)]
		if !ok {
			return nil, fmt.Errorf("%+v is visible, which nobody wrote", v)
		}
		if i >= base && i < base+runSize {
			got[i]++
		}
	}
	return got, nil
}

// expect checks that the records of want, and no others if the sink is
// transactional, are visible, and once if it is not at-least-once.
func (s *system[T]) expect(base int, want map[int]bool) error {
	got, err := s.visible(base)
	if err != nil {
		return err
	}
	for i := range want {
		if got[i] == 0 {
			return fmt.Errorf("lost: %+v, %d of %d records are visible", s.make(i), len(got), len(want))
		}
	}
	for i, n := range got {
		if n > 1 && s.kind != connector.AtLeastOnce {
			return fmt.Errorf("duplicate: %+v is visible %d times", s.make(i), n)
		}
		if !want[i] && s.kind == connector.Transactional {
			return fmt.Errorf("visible, but not committed: %+v", s.make(i))
		}
	}
	return nil
}

// drop leaves a writer as a crash would. It is closed only after all checks, to
// free what it holds.
func (s *system[T]) drop(w connector.Writer[T]) { s.dropped = append(s.dropped, w) }

func (s *system[T]) close() {
	for _, w := range s.dropped {
		w.Close()
	}
}
