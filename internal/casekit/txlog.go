package casekit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/staunchdev/staunch/connector"
)

// TxLog is a transactional sink in memory: records become visible at commit, a
// transaction is named after the attempt that made it, and recovery rolls back
// all that it is not told of.
type TxLog[T any] struct {
	// Failing, if set, is asked before each Commit and Recover; an error is its
	// answer. Set it before the run begins.
	Failing func() error

	mu       sync.Mutex
	staged   map[string][]T
	done     map[string]bool
	visible  []T
	commits  int // transactions committed
	repeated int // commits of a transaction that was committed before
	written  int // records taken, replays included
}

// NewTxLog returns an empty log.
func NewTxLog[T any]() *TxLog[T] {
	return &TxLog[T]{staged: map[string][]T{}, done: map[string]bool{}}
}

// Visible is what a reader of committed records sees.
func (l *TxLog[T]) Visible() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.visible)
}

// Written is how many records writers took, replays included.
func (l *TxLog[T]) Written() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.written
}

// Spec implements connector.Sink.
func (l *TxLog[T]) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Transactional, System: "script"}
}

// Writer implements connector.Sink.
func (l *TxLog[T]) Writer(_ context.Context, i connector.Instance) (connector.Writer[T], error) {
	return &txWriter[T]{l: l, i: i}, nil
}

// Commit implements connector.Committer.
func (l *TxLog[T]) Commit(_ context.Context, cs []connector.Committable) error {
	if l.Failing != nil {
		if err := l.Failing(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range cs {
		records, there := l.staged[c.ID]
		switch {
		case l.done[c.ID]:
			l.repeated++
			continue
		case !there:
			return fmt.Errorf("transaction %s: %w", c.ID, connector.ErrLost)
		}
		l.visible = append(l.visible, records...)
		l.done[c.ID] = true
		l.commits++
		delete(l.staged, c.ID)
	}
	return nil
}

// Recover implements connector.Committer.
func (l *TxLog[T]) Recover(ctx context.Context, _ connector.Instance, pending []connector.Committable) error {
	if err := l.Commit(ctx, pending); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.staged)
	return nil
}

type txWriter[T any] struct {
	l       *TxLog[T]
	i       connector.Instance
	records []T
}

func (w *txWriter[T]) Write(_ context.Context, b connector.Batch[T]) error {
	w.records = append(w.records, b.Values...)
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.written += len(b.Values)
	return nil
}

func (w *txWriter[T]) Prepare(_ context.Context, id connector.CheckpointID) ([]connector.Committable, error) {
	if len(w.records) == 0 {
		return nil, nil
	}
	name := fmt.Sprintf("%s-%d-L%d-G%d-A%d-C%d", w.i.Operator, w.i.Subtask, w.i.Lineage, w.i.Generation, w.i.Attempt, id)
	w.l.mu.Lock()
	defer w.l.mu.Unlock()
	w.l.staged[name], w.records = w.records, nil
	return []connector.Committable{{ID: name}}, nil
}

func (w *txWriter[T]) Close() error { return nil }
