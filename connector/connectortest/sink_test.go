package connectortest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/staunchdev/staunch/connector"
)

// store is a system in memory, and how its sinks are broken.
type store struct {
	mu      sync.Mutex
	kind    connector.SinkKind
	visible []int
	staged  map[string][]int
	done    map[string]bool
	fence   map[string]uint64

	commitForgets        bool
	commitDuplicates     bool
	commitRefusesAgain   bool
	recoverForgets       bool
	recoverDeletesFirst  bool
	recoverDeletesNewer  bool
	recoverDeletesOthers bool
	visibleAtPrepare     bool
	prepareForgetsTail   bool
	epochsOverlap        bool
	closeDropsPrepared   bool
	nameWithoutAttempt   bool
	keepsBatch           bool
	duplicateRows        bool
	noFence              bool
}

func newStore(kind connector.SinkKind) *store {
	return &store{kind: kind, staged: map[string][]int{}, done: map[string]bool{}, fence: map[string]uint64{}}
}

// plain is a sink without Committer and Fencer.
type plain struct{ *store }

type transactional struct{ plain }

type fenced struct{ plain }

func (s *store) sink() connector.Sink[int] {
	switch s.kind {
	case connector.Transactional:
		return transactional{plain{s}}
	case connector.Idempotent:
		return fenced{plain{s}}
	}
	return plain{s}
}

func (p plain) Spec() connector.SinkSpec {
	if p.kind == connector.Idempotent {
		return connector.SinkSpec{Kind: p.kind, Key: []string{"i"}, Fenced: true}
	}
	return connector.SinkSpec{Kind: p.kind}
}

func (p plain) Writer(_ context.Context, i connector.Instance) (connector.Writer[int], error) {
	return &storeWriter{store: p.store, i: i}, nil
}

func (f fenced) Fence(_ context.Context, i connector.Instance) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fence[i.Operator] > i.Generation {
		return connector.ErrFenced
	}
	f.fence[i.Operator] = i.Generation
	return nil
}

func (s transactional) Commit(_ context.Context, cs []connector.Committable) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range cs {
		switch {
		case s.commitForgets:
		case s.done[c.ID] && s.commitRefusesAgain:
			return errors.New("no such transaction")
		case s.done[c.ID] && !s.commitDuplicates:
		default:
			rows, ok := s.staged[c.ID]
			if !ok {
				return fmt.Errorf("%s: %w", c.ID, connector.ErrLost)
			}
			s.visible = append(s.visible, rows...)
			s.done[c.ID] = true
		}
	}
	return nil
}

func (s transactional) Recover(ctx context.Context, i connector.Instance, pending []connector.Committable) error {
	drop := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for id := range s.staged {
			var generation, attempt uint64
			operator, rest, _ := strings.Cut(id, "/")
			fmt.Sscanf(rest, "%d/%d", &generation, &attempt)
			own := operator == i.Operator || s.recoverDeletesOthers && strings.HasPrefix(operator, i.Operator)
			older := generation < i.Generation || generation == i.Generation && attempt < i.Attempt
			if own && (older || s.recoverDeletesNewer) && !s.done[id] {
				delete(s.staged, id)
			}
		}
	}
	if s.recoverForgets {
		return nil
	}
	if s.recoverDeletesFirst {
		drop()
	}
	if err := s.Commit(ctx, pending); err != nil {
		return err
	}
	drop()
	return nil
}

type storeWriter struct {
	*store
	i     connector.Instance
	rows  []int
	batch []int
	last  string
}

func (w *storeWriter) Write(_ context.Context, b connector.Batch[int]) error {
	if w.keepsBatch {
		w.batch = b.Values
		return nil
	}
	w.rows = append(w.rows, b.Values...)
	return nil
}

func (w *storeWriter) Prepare(_ context.Context, id connector.CheckpointID) ([]connector.Committable, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows = append(w.rows, w.batch...)
	w.batch = nil
	if len(w.rows) == 0 {
		return nil, nil
	}
	rows := slices.Clone(w.rows)
	if w.prepareForgetsTail {
		rows = rows[:len(rows)-1]
	}
	if !w.epochsOverlap {
		w.rows = w.rows[:0]
	}
	if w.kind != connector.Transactional {
		if w.kind == connector.Idempotent && w.fence[w.i.Operator] > w.i.Generation && !w.noFence {
			return nil, connector.ErrFenced
		}
		for _, r := range rows {
			if w.kind == connector.AtLeastOnce || w.duplicateRows || !slices.Contains(w.visible, r) {
				w.visible = append(w.visible, r)
			}
		}
		return nil, nil
	}
	if w.visibleAtPrepare {
		w.visible = append(w.visible, rows...)
	}
	name := fmt.Sprintf("%s/%d/%d/%d/%d", w.i.Operator, w.i.Generation, w.i.Attempt, w.i.Subtask, id)
	if w.nameWithoutAttempt {
		name = fmt.Sprintf("%s/0/0/%d/%d", w.i.Operator, w.i.Subtask, id)
	}
	w.staged[name] = rows
	w.done[name] = w.visibleAtPrepare
	w.last = name
	return []connector.Committable{{ID: name}}, nil
}

func (w *storeWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closeDropsPrepared && !w.done[w.last] {
		delete(w.staged, w.last)
	}
	return nil
}

// verdict runs the suite on a store.
func verdict(ctx context.Context, s *store) error {
	sys := newSystem(s.sink, func(i int) int { return i }, func() []int {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Clone(s.visible)
	})
	defer sys.close()
	for _, c := range sys.checks() {
		if err := c.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func TestSoundSinksPass(t *testing.T) {
	for _, kind := range []connector.SinkKind{connector.AtLeastOnce, connector.Idempotent, connector.Transactional} {
		t.Run(kind.String(), func(t *testing.T) {
			if err := verdict(t.Context(), newStore(kind)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBrokenSinksAreCaught(t *testing.T) {
	for _, tt := range []struct {
		name     string
		kind     connector.SinkKind
		breakage func(*store)
		want     string
	}{
		{"commit forgets", connector.Transactional, func(s *store) { s.commitForgets = true }, "lost"},
		{"commit twice duplicates", connector.Transactional, func(s *store) { s.commitDuplicates = true }, "duplicate"},
		{"commit twice fails", connector.Transactional, func(s *store) { s.commitRefusesAgain = true }, "no such transaction"},
		{"recover forgets pending", connector.Transactional, func(s *store) { s.recoverForgets = true }, "lost"},
		{"recover deletes pending", connector.Transactional, func(s *store) { s.recoverDeletesFirst = true }, "lost"},
		{"recover deletes what newer ones prepared", connector.Transactional, func(s *store) { s.recoverDeletesNewer = true }, "lost"},
		{"recover deletes what another operator prepared", connector.Transactional, func(s *store) { s.recoverDeletesOthers = true }, "another operator"},
		{"visible at prepare", connector.Transactional, func(s *store) { s.visibleAtPrepare = true }, "visible, but not committed"},
		{"prepare forgets the last record", connector.Transactional, func(s *store) { s.prepareForgetsTail = true }, "lost"},
		{"epochs share a transaction", connector.Transactional, func(s *store) { s.epochsOverlap = true }, "committables for 0 records"},
		{"close drops what was prepared", connector.Transactional, func(s *store) { s.closeDropsPrepared = true }, "lost"},
		{"names are used again", connector.Transactional, func(s *store) { s.nameWithoutAttempt = true }, ""},
		{"keeps the slices of a batch", connector.Transactional, func(s *store) { s.keepsBatch = true }, ""},
		{"replay inserts again", connector.Idempotent, func(s *store) { s.duplicateRows = true }, "duplicate"},
		{"prepare does not write", connector.Idempotent, func(s *store) { s.prepareForgetsTail = true }, "lost"},
		{"no fence", connector.Idempotent, func(s *store) { s.noFence = true }, "want connector.ErrFenced"},
		{"loses", connector.AtLeastOnce, func(s *store) { s.prepareForgetsTail = true }, "lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(tt.kind)
			tt.breakage(s)
			err := verdict(t.Context(), s)
			if err == nil {
				t.Fatal("not caught")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("caught as %q, want %q", err, tt.want)
			}
			t.Log(err)
		})
	}
}
