package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/staunchdev/staunch/connector"
)

// The fence is a row for each job and operator with the newest generation that
// has begun. Every transaction reads it and fails on a higher one. The read
// takes a lock that keeps the row until the transaction ends, so either the
// transaction commits before the newer generation raises the row, and is seen by
// it; or it waits, reads the higher one, and changes nothing.

// prepareFence makes the tables.
func (db *database) prepareFence(ctx context.Context, t Table) error {
	statements := []string{"CREATE TABLE IF NOT EXISTS staunch_fence (job " + db.keyType + " NOT NULL, operator " + db.keyType +
		" NOT NULL, generation BIGINT NOT NULL, PRIMARY KEY (job, operator))"}
	if t.Create != "" {
		statements = append(statements, t.Create)
	}
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// raise puts the fence at i's generation.
func (db *database) raise(ctx context.Context, i connector.Instance) error {
	return db.transact(ctx, func(tx *sql.Tx) error {
		// Update before select: two transactions that hold a shared lock of the row
		// and both want to raise it would wait for each other.
		update := func() (int64, error) {
			r, err := tx.ExecContext(ctx, db.bind("UPDATE staunch_fence SET generation = ? WHERE job = ? AND operator = ? AND generation <= ?"),
				int64(i.Generation), i.Job, i.Operator, int64(i.Generation))
			if err != nil {
				return 0, err
			}
			return r.RowsAffected()
		}
		n, err := update()
		if err != nil || n > 0 {
			return err
		}
		// No row yet, a higher one, or MySQL's "nothing changed".
		found, err := db.generation(ctx, tx, i)
		if errors.Is(err, sql.ErrNoRows) {
			_, err := tx.ExecContext(ctx, db.bind("INSERT INTO staunch_fence (job, operator, generation) VALUES (?, ?, ?)"),
				i.Job, i.Operator, int64(i.Generation))
			return err
		}
		if err != nil {
			return err
		}
		return compare(i, found)
	})
}

// passFence fails with connector.ErrFenced if a newer generation has begun.
func (db *database) passFence(ctx context.Context, tx *sql.Tx, i connector.Instance) error {
	found, err := db.generation(ctx, tx, i)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("sqlsink: no fence row for job %q, operator %q: was staunch_fence emptied?", i.Job, i.Operator)
	}
	if err != nil {
		return fmt.Errorf("read fence: %w", err)
	}
	return compare(i, found)
}

func (db *database) generation(ctx context.Context, tx *sql.Tx, i connector.Instance) (uint64, error) {
	var g int64
	err := tx.QueryRowContext(ctx, db.bind("SELECT generation FROM staunch_fence WHERE job = ? AND operator = ?"+db.shared), i.Job, i.Operator).Scan(&g)
	return uint64(g), err
}

func compare(i connector.Instance, found uint64) error {
	if found > i.Generation {
		return fmt.Errorf("sqlsink: generation %d of job %q, operator %q: generation %d has begun: %w",
			i.Generation, i.Job, i.Operator, found, connector.ErrFenced)
	}
	return nil
}
