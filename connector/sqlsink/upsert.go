package sqlsink

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/staunchdev/staunch/connector"
)

// flushRows is how many rows of different keys a writer keeps before it writes
// them; with a checkpoint it writes what it has.
const flushRows = 5000

// UpsertSink overwrites rows by the key of their table. It is Idempotent: after a
// restart the rows that were written since the checkpoint are written again, and
// values of the past may be seen until the replay has caught up. It is exactly
// once if each key has one writer (partition the stream by it) and the last row
// of a key is a function of the input.
type UpsertSink[T any] struct {
	t   Table
	row func(T) []any
}

// Upsert makes a sink that overwrites by t.Key, which must be a unique key of
// the table. row returns a value for each of t.Columns, in their order.
func Upsert[T any](t Table, row func(T) []any) *UpsertSink[T] { return &UpsertSink[T]{t, row} }

// Spec implements connector.Sink.
func (s *UpsertSink[T]) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Idempotent, Key: s.t.Key, Fenced: true, System: s.t.Driver + " table " + s.t.Name}
}

// Fence implements connector.Fencer. It makes the tables that are missing.
func (s *UpsertSink[T]) Fence(ctx context.Context, i connector.Instance) error {
	if err := s.t.check(true); err != nil {
		return err
	}
	return begin(ctx, s.t, i)
}

// begin makes the tables and raises the fence.
func begin(ctx context.Context, t Table, i connector.Instance) error {
	db, err := acquire(t)
	if err != nil {
		return err
	}
	defer db.release()
	if err := db.prepareFence(ctx, t); err != nil {
		return err
	}
	if err := db.raise(ctx, i); err != nil {
		return fmt.Errorf("raise fence: %w", err)
	}
	return nil
}

// Writer implements connector.Sink.
func (s *UpsertSink[T]) Writer(_ context.Context, i connector.Instance) (connector.Writer[T], error) {
	if err := s.t.check(true); err != nil {
		return nil, err
	}
	db, err := acquire(s.t)
	if err != nil {
		return nil, err
	}
	w := &upserter[T]{UpsertSink: s, i: i, db: db, rows: make(map[string][]any)}
	for _, k := range s.t.Key {
		w.key = append(w.key, slices.Index(s.t.Columns, k))
	}
	return w, nil
}

// upserter keeps the last row of each key until it writes them.
type upserter[T any] struct {
	*UpsertSink[T]
	i    connector.Instance
	db   *database
	key  []int // columns of the key
	rows map[string][]any
	buf  []byte
}

// Write implements connector.Writer.
func (w *upserter[T]) Write(ctx context.Context, b connector.Batch[T]) error {
	for _, v := range b.Values {
		row, err := w.t.values(v, w.row(v))
		if err != nil {
			return err
		}
		w.buf = w.buf[:0]
		for _, k := range w.key {
			if w.buf, err = appendKey(w.buf, row[k]); err != nil {
				return fmt.Errorf("sqlsink: key column %q of table %s %w, record %.300s", w.t.Columns[k], w.t.Name, err, fmt.Sprintf("%+v", v))
			}
		}
		w.rows[string(w.buf)] = row
		if len(w.rows) >= flushRows {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes all rows in one transaction, by ascending key: writers that share
// keys then take their locks in the same order.
func (w *upserter[T]) flush(ctx context.Context) error {
	if len(w.rows) == 0 {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(w.rows), strings.Compare)
	err := w.db.transact(ctx, func(tx *sql.Tx) error {
		if err := w.db.passFence(ctx, tx, w.i); err != nil {
			return err
		}
		return w.db.inRuns(ctx, tx, w.t, len(keys), w.db.upsert, func(i int) []any { return w.rows[keys[i]] })
	})
	if err != nil {
		return fmt.Errorf("upsert %d rows into %s: %w", len(keys), w.t.Name, err)
	}
	clear(w.rows)
	return nil
}

// inRuns writes n rows by statements of as many rows as one may have.
func (db *database) inRuns(ctx context.Context, tx *sql.Tx, t Table, n int, statement func(Table, int) string, row func(int) []any) error {
	run := db.dialect.rows(len(t.Columns))
	var full *sql.Stmt
	args := make([]any, 0, min(run, n)*len(t.Columns))
	for from := 0; from < n; from += run {
		to := min(from+run, n)
		args = args[:0]
		for i := from; i < to; i++ {
			args = append(args, row(i)...)
		}
		if to-from < run || n < 2*run {
			if _, err := tx.ExecContext(ctx, statement(t, to-from), args...); err != nil {
				return err
			}
			continue
		}
		if full == nil {
			var err error
			if full, err = tx.PrepareContext(ctx, statement(t, run)); err != nil {
				return err
			}
			defer full.Close()
		}
		if _, err := full.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// Prepare writes what is kept. There is nothing to commit.
func (w *upserter[T]) Prepare(ctx context.Context, _ connector.CheckpointID) ([]connector.Committable, error) {
	return nil, w.flush(ctx)
}

// Close implements connector.Writer.
func (w *upserter[T]) Close() error {
	w.rows = nil
	return w.db.release()
}
