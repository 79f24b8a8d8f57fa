package connectortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/staunchdev/staunch/connector"
)

// patience is how long a source may take to say that there is something.
const patience = 10 * time.Second

// sourceRecords is how many records fill is asked for.
const sourceRecords = 60

// Source reads all records, cuts after each Poll and reads on from there in a
// new reader, adds splits in another order, and restarts the enumerator.
//
// newSource opens the same system anew. fill puts n records, which print (by
// %+v) differently, into the system; it is called once, before newSource.
func Source[T any](t *testing.T, newSource func(t *testing.T) connector.Source[T], fill func(t *testing.T, n int)) {
	fill(t, sourceRecords)
	s := &sourceSystem[T]{open: func() connector.Source[T] { return newSource(t) }, n: sourceRecords}
	for _, c := range s.checks() {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
			defer cancel()
			if err := c.run(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// sourceSystem is the system behind the source.
type sourceSystem[T any] struct {
	open func() connector.Source[T]
	n    int
}

func (s *sourceSystem[T]) checks() []check {
	return []check{
		{"read all", s.readAll},
		{"cut after each Poll", s.cuts},
		{"order of Add", s.addOrder},
		{"no splits", s.noSplits},
		{"restart of the enumerator", s.enumerator},
		{"close early", s.closeEarly},
	}
}

// taken is what one Poll gave.
type taken struct {
	records []string
	next    connector.Offset
}

// reading is what a reader gave, Poll by Poll, for each split.
type reading map[string][]taken

func (r reading) records(split string) []string {
	var all []string
	for _, t := range r[split] {
		all = append(all, t.records...)
	}
	return all
}

func (r reading) count() (n int) {
	for split := range r {
		n += len(r.records(split))
	}
	return n
}

// splits asks a new enumerator until it has nothing new.
func (s *sourceSystem[T]) splits(ctx context.Context) (all []connector.Split, state []byte, err error) {
	e, err := s.open().Enumerator(ctx, connector.Instance{Job: "connectortest", Operator: "source", Subtask: -1, Generation: 1, Attempt: 1})
	if err != nil {
		return nil, nil, fmt.Errorf("Enumerator: %w", err)
	}
	defer e.Close()
	for {
		found, more, err := e.Discover(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("Discover: %w", err)
		}
		all = append(all, found...)
		if !more || len(found) == 0 && len(all) > 0 {
			break
		}
	}
	for i, a := range all {
		if slices.ContainsFunc(all[:i], func(b connector.Split) bool { return a.ID == b.ID }) {
			return nil, nil, fmt.Errorf("Discover returned split %s twice", a.ID)
		}
	}
	if state, err = e.Snapshot(); err != nil {
		return nil, nil, fmt.Errorf("Snapshot: %w", err)
	}
	return all, state, nil
}

// read reads splits, by Polls of at most max records, until they end or until
// there were want records.
func (s *sourceSystem[T]) read(ctx context.Context, splits []connector.Split, max, want int) (got reading, err error) {
	src := s.open()
	r, err := src.Reader(ctx, connector.Instance{Job: "connectortest", Operator: "source", Parallelism: 1, Generation: 1, Attempt: 1})
	if err != nil {
		return nil, fmt.Errorf("Reader: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	open := map[string]bool{}
	for _, sp := range splits {
		if err := r.Add(sp); err != nil {
			return nil, fmt.Errorf("Add: %w", err)
		}
		open[sp.ID] = true
	}
	got = reading{}
	bounded := src.Spec().Bounded
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for len(open) > 0 && (bounded || got.count() < want) {
		b := connector.Batch[T]{Values: make([]T, 1, 1+max)} // Poll appends
		split, next, err := r.Poll(&b, max)
		n := len(b.Values) - 1
		switch {
		case n < 0 || n > max:
			return nil, fmt.Errorf("Poll of at most %d records left %d behind the one that was there", max, n)
		case len(b.Bad) > 0:
			return nil, fmt.Errorf("Poll could not decode %q: %w", b.Bad[0].Raw, b.Bad[0].Err)
		case errors.Is(err, connector.ErrEmpty):
			if n > 0 {
				return nil, fmt.Errorf("Poll returned ErrEmpty and %d records", n)
			}
			select {
			case <-r.Available():
			case <-deadline.C:
				return nil, fmt.Errorf("after %d of %d records nothing became available within %v", got.count(), want, patience)
			}
			continue
		case err != nil && err != io.EOF:
			return nil, fmt.Errorf("Poll: %w", err)
		case !open[split]:
			return nil, fmt.Errorf("Poll named split %q, which was not added or has ended", split)
		}
		t := taken{next: next}
		for _, v := range b.Values[1:] {
			t.records = append(t.records, fmt.Sprintf("%+v", v))
		}
		got[split] = append(got[split], t)
		if err == io.EOF {
			delete(open, split)
		}
	}
	if len(open) == 0 {
		var b connector.Batch[T]
		if _, _, err := r.Poll(&b, max); !errors.Is(err, connector.ErrEmpty) || len(b.Values) > 0 {
			return nil, fmt.Errorf("Poll after the end of all splits gave %d records and %v, want ErrEmpty", len(b.Values), err)
		}
	}
	return got, nil
}

// readAll checks that each record comes once.
func (s *sourceSystem[T]) readAll(ctx context.Context) error {
	splits, _, err := s.splits(ctx)
	if err != nil {
		return err
	}
	for _, max := range []int{1, 7, 1024} {
		got, err := s.read(ctx, splits, max, s.n)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for split := range got {
			for _, r := range got.records(split) {
				if seen[r] {
					return fmt.Errorf("record %s was read twice", r)
				}
				seen[r] = true
			}
		}
		if len(seen) != s.n {
			return fmt.Errorf("%d records were read by Polls of %d, %d are there", len(seen), max, s.n)
		}
	}
	return nil
}

// cuts reads on from every offset that was returned.
func (s *sourceSystem[T]) cuts(ctx context.Context) error {
	splits, _, err := s.splits(ctx)
	if err != nil {
		return err
	}
	for _, max := range []int{1, 5} {
		all, err := s.read(ctx, splits, max, s.n)
		if err != nil {
			return err
		}
		for _, sp := range splits {
			whole := all.records(sp.ID)
			read := 0
			for _, t := range all[sp.ID] {
				read += len(t.records)
				from := sp
				from.Next = connector.Offset{N: t.next.N, State: slices.Clone(t.next.State)}
				rest, err := s.read(ctx, []connector.Split{from}, 1+max, len(whole)-read)
				if err != nil {
					return fmt.Errorf("from offset %d of split %s: %w", t.next.N, sp.ID, err)
				}
				if got := rest.records(sp.ID); !slices.Equal(got, whole[read:]) {
					return fmt.Errorf("from offset %d of split %s, behind %d records: read %q, want %q", t.next.N, sp.ID, read, got, whole[read:])
				}
			}
		}
	}
	return nil
}

// addOrder adds the splits last to first.
func (s *sourceSystem[T]) addOrder(ctx context.Context) error {
	splits, _, err := s.splits(ctx)
	if err != nil {
		return err
	}
	one, err := s.read(ctx, splits, 4, s.n)
	if err != nil {
		return err
	}
	slices.Reverse(splits)
	other, err := s.read(ctx, splits, 3, s.n)
	if err != nil {
		return err
	}
	for _, sp := range splits {
		if a, b := one.records(sp.ID), other.records(sp.ID); !slices.Equal(a, b) {
			return fmt.Errorf("split %s was read as %q, and as %q", sp.ID, a, b)
		}
	}
	return nil
}

// noSplits polls a reader that has none.
func (s *sourceSystem[T]) noSplits(ctx context.Context) error {
	r, err := s.open().Reader(ctx, connector.Instance{Job: "connectortest", Operator: "source", Parallelism: 1, Generation: 1, Attempt: 1})
	if err != nil {
		return fmt.Errorf("Reader: %w", err)
	}
	var b connector.Batch[T]
	if _, _, err := r.Poll(&b, 10); !errors.Is(err, connector.ErrEmpty) {
		return fmt.Errorf("Poll without splits: %v, want ErrEmpty", err)
	}
	if r.Available() == nil {
		return errors.New("Available is nil")
	}
	return r.Close()
}

// enumerator restores a new one from the state of one that returned all.
func (s *sourceSystem[T]) enumerator(ctx context.Context) error {
	all, state, err := s.splits(ctx)
	if err != nil {
		return err
	}
	e, err := s.open().Enumerator(ctx, connector.Instance{Job: "connectortest", Operator: "source", Subtask: -1, Generation: 2, Attempt: 1})
	if err != nil {
		return fmt.Errorf("Enumerator: %w", err)
	}
	defer e.Close()
	empty, err := e.Snapshot()
	if err != nil {
		return fmt.Errorf("Snapshot before Discover: %w", err)
	}
	for _, tt := range []struct {
		state []byte
		want  int
	}{{state, 0}, {empty, len(all)}} {
		if err := e.Restore(tt.state); err != nil {
			return fmt.Errorf("Restore: %w", err)
		}
		found, _, err := e.Discover(ctx)
		if err != nil {
			return fmt.Errorf("Discover: %w", err)
		}
		if len(found) != tt.want {
			return fmt.Errorf("Discover returned %d splits after a Restore, want %d", len(found), tt.want)
		}
	}
	return nil
}

// closeEarly closes a reader that has more.
func (s *sourceSystem[T]) closeEarly(ctx context.Context) error {
	splits, _, err := s.splits(ctx)
	if err != nil {
		return err
	}
	r, err := s.open().Reader(ctx, connector.Instance{Job: "connectortest", Operator: "source", Parallelism: 1, Generation: 1, Attempt: 1})
	if err != nil {
		return fmt.Errorf("Reader: %w", err)
	}
	for _, sp := range splits {
		if err := r.Add(sp); err != nil {
			return fmt.Errorf("Add: %w", err)
		}
	}
	select {
	case <-r.Available():
	case <-time.After(patience):
		return errors.New("Available is not ready after Add")
	}
	if _, _, err := r.Poll(new(connector.Batch[T]), 1); err != nil && err != io.EOF && !errors.Is(err, connector.ErrEmpty) {
		return fmt.Errorf("Poll: %w", err)
	}
	return r.Close()
}
