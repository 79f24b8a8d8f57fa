package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/connector"
)

// LedgerSink inserts rows exactly once. The rows of an epoch are its committable
// and so part of the checkpoint: what is inserted after a crash are these rows,
// never ones that were made again. Each insertion leaves a marker in
// staunch_ledger in the same database transaction, by which it is not repeated.
//
// # Markers are kept
//
// The sink never deletes a marker. Whatever checkpoint is still kept, a
// savepoint of last year too, can be started from, and what it names is then
// committed once more: without their markers these rows would be there twice.
// Which checkpoints are kept is for the job's storage to say; a sink is not told.
//
// A marker is a row for each subtask and checkpoint with output, whatever the
// number of records: in SQLite 63 bytes with its index, for a job named orders
// and a sink named ledger. At a checkpoint a second that is 5.4 MB a day for each
// subtask of the sink. Where that is too much, delete what no kept checkpoint can
// ask for, while the job runs or not:
//
//  1. checkpoints list: note the lowest id that is kept, pinned ones included.
//  2. checkpoints show ID, for each that is kept: note the lowest number under
//     PREPARED FOR among the committables of this sink.
//  3. With n the lower of the two:
//     DELETE FROM staunch_ledger WHERE job = 'orders' AND operator = 'ledger' AND checkpoint < n
//
// A copy of the storage from which the job may be started counts as kept too.
type LedgerSink[T any] struct {
	t   Table
	row func(T) []any

	mu         sync.Mutex
	generation uint64 // of the last Recover
}

// Ledger makes a Transactional sink that inserts. row returns a value for each
// of t.Columns, in their order. An epoch's rows are held in memory and in the
// checkpoint until they are committed.
func Ledger[T any](t Table, row func(T) []any) *LedgerSink[T] { return &LedgerSink[T]{t: t, row: row} }

// Spec implements connector.Sink.
func (s *LedgerSink[T]) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Transactional, System: s.t.Driver + " table " + s.t.Name}
}

// epoch is the Data of a committable: this, and then the rows, each a CBOR array.
type epoch struct {
	Job        string                 `cbor:"1,keyasint"`
	Operator   string                 `cbor:"2,keyasint"`
	Lineage    uint64                 `cbor:"3,keyasint"`
	Generation uint64                 `cbor:"4,keyasint"`
	Attempt    uint64                 `cbor:"5,keyasint"`
	ID         connector.CheckpointID `cbor:"6,keyasint"`
	Subtask    int                    `cbor:"7,keyasint"`
	Rows       int                    `cbor:"8,keyasint"`
}

func (e epoch) String() string {
	return fmt.Sprintf("%s/%s/%d/%d/%d/%d/%d", e.Job, e.Operator, e.Lineage, e.Generation, e.Attempt, e.ID, e.Subtask)
}

// Values keep their type on the way: int64, float64, bool, []byte, string,
// time.Time with nanoseconds and zone, nil.
var (
	rowEncoding = must(cbor.EncOptions{Time: cbor.TimeRFC3339Nano, TimeTag: cbor.EncTagRequired}.EncMode())
	rowDecoding = must(cbor.DecOptions{
		IntDec:           cbor.IntDecConvertSigned,
		UTF8:             cbor.UTF8DecodeInvalid,
		MaxArrayElements: 1 << 20,
	}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // constant options
	}
	return v
}

// Writer implements connector.Sink.
func (s *LedgerSink[T]) Writer(_ context.Context, i connector.Instance) (connector.Writer[T], error) {
	if err := s.t.check(false); err != nil {
		return nil, err
	}
	db, err := acquire(s.t) // kept open from one Commit to the next
	if err != nil {
		return nil, err
	}
	return &ledgerWriter[T]{s: s, i: i, db: db}, nil
}

// ledgerWriter encodes the rows of an epoch.
type ledgerWriter[T any] struct {
	s    *LedgerSink[T]
	i    connector.Instance
	db   *database
	buf  []byte
	rows int
}

// Write implements connector.Writer.
func (w *ledgerWriter[T]) Write(_ context.Context, b connector.Batch[T]) error {
	for _, v := range b.Values {
		row, err := w.s.t.values(v, w.s.row(v))
		if err != nil {
			return err
		}
		enc, err := rowEncoding.Marshal(row)
		if err != nil {
			return fmt.Errorf("sqlsink: encode row of table %s: %w", w.s.t.Name, err)
		}
		w.buf = append(w.buf, enc...)
		w.rows++
	}
	return nil
}

// Prepare implements connector.Writer.
func (w *ledgerWriter[T]) Prepare(_ context.Context, id connector.CheckpointID) ([]connector.Committable, error) {
	if w.rows == 0 {
		return nil, nil
	}
	e := epoch{w.i.Job, w.i.Operator, w.i.Lineage, w.i.Generation, w.i.Attempt, id, w.i.Subtask, w.rows}
	data, err := cbor.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode committable: %w", err)
	}
	c := connector.Committable{ID: e.String(), Data: append(data, w.buf...)}
	w.buf, w.rows = w.buf[:0], 0
	return []connector.Committable{c}, nil
}

// Close implements connector.Writer.
func (w *ledgerWriter[T]) Close() error { return w.db.release() }

// Recover makes the tables that are missing, raises the fence, and inserts what
// is pending. Nothing else is left behind in the database by older attempts.
func (s *LedgerSink[T]) Recover(ctx context.Context, i connector.Instance, pending []connector.Committable) error {
	if err := s.t.check(false); err != nil {
		return err
	}
	db, err := acquire(s.t)
	if err != nil {
		return err
	}
	defer db.release()
	_, err = db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS staunch_ledger (job "+db.keyType+" NOT NULL, operator "+db.keyType+
		" NOT NULL, lineage BIGINT NOT NULL, generation BIGINT NOT NULL, attempt BIGINT NOT NULL, checkpoint BIGINT NOT NULL, subtask INT NOT NULL,"+
		" PRIMARY KEY (job, operator, lineage, generation, attempt, checkpoint, subtask))")
	if err != nil {
		return fmt.Errorf("make table staunch_ledger: %w", err)
	}
	if err := begin(ctx, s.t, i); err != nil {
		return err
	}
	s.mu.Lock()
	s.generation = i.Generation
	s.mu.Unlock()
	return s.Commit(ctx, pending)
}

// Commit inserts the rows of cs, all of them in one database transaction.
func (s *LedgerSink[T]) Commit(ctx context.Context, cs []connector.Committable) error {
	if len(cs) == 0 {
		return nil
	}
	db, err := acquire(s.t)
	if err != nil {
		return err
	}
	defer db.release()
	err = db.transact(ctx, func(tx *sql.Tx) error {
		for _, c := range cs {
			if err := s.insert(ctx, db, tx, c); err != nil {
				return fmt.Errorf("%s: %w", c.ID, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("commit to ledger %s: %w", s.t.Name, err)
	}
	return nil
}

// insert inserts one epoch, unless its marker is there.
func (s *LedgerSink[T]) insert(ctx context.Context, db *database, tx *sql.Tx, c connector.Committable) error {
	var e epoch
	rest, err := cbor.UnmarshalFirst(c.Data, &e)
	if err != nil {
		return fmt.Errorf("read the committable: %w", err)
	}
	s.mu.Lock()
	i := connector.Instance{Job: e.Job, Operator: e.Operator, Generation: max(s.generation, e.Generation)}
	s.mu.Unlock()
	if err := db.passFence(ctx, tx, i); err != nil {
		return err
	}
	marker := []any{e.Job, e.Operator, int64(e.Lineage), int64(e.Generation), int64(e.Attempt), int64(e.ID), e.Subtask}
	var one int
	err = tx.QueryRowContext(ctx, db.bind("SELECT 1 FROM staunch_ledger WHERE job = ? AND operator = ? AND lineage = ? AND generation = ? AND attempt = ? AND checkpoint = ? AND subtask = ?"), marker...).Scan(&one)
	if err == nil {
		return nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("read marker: %w", err)
	}
	if _, err := tx.ExecContext(ctx, db.bind("INSERT INTO staunch_ledger (job, operator, lineage, generation, attempt, checkpoint, subtask) VALUES (?, ?, ?, ?, ?, ?, ?)"), marker...); err != nil {
		return fmt.Errorf("insert marker: %w", err)
	}
	rows := make([][]any, e.Rows)
	for n := range rows {
		if rest, err = rowDecoding.UnmarshalFirst(rest, &rows[n]); err != nil {
			return fmt.Errorf("read row %d of %d: %w", n, e.Rows, err)
		}
		if len(rows[n]) != len(s.t.Columns) {
			return fmt.Errorf("%d values were stored, but the table has the %d columns %q now", len(rows[n]), len(s.t.Columns), s.t.Columns)
		}
	}
	return db.inRuns(ctx, tx, s.t, len(rows), db.dialect.insert, func(n int) []any { return rows[n] })
}
