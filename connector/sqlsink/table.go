// Package sqlsink writes to SQLite, PostgreSQL and MySQL through database/sql.
//
// Upsert overwrites rows by a key; a replay overwrites them again with the same,
// and a fence row keeps an older process of the job from overwriting newer ones.
// Ledger inserts rows exactly once: they are kept in the checkpoint, and inserted
// together with a marker that says so when the checkpoint is committed.
//
// The package imports no driver: import the one that Table.Driver names.
package sqlsink

import (
	"fmt"
	"slices"
)

// Table names the database, the table and its columns.
type Table struct {
	Driver, DSN string // database/sql; drivers: sqlite, pgx, postgres, mysql
	Name        string // may be schema.table
	Columns     []string
	Key         []string // a unique key of the table, part of Columns; Upsert only
	Create      string   // statement that makes the table if it is missing; empty: it is there
	Renew       string   // statement that runs when the job is started fresh, such as DELETE FROM t; empty: rows stay
}

// check finds what is wrong with t without asking the database.
func (t Table) check(keyed bool) error {
	if t.Name == "" || len(t.Columns) == 0 {
		return fmt.Errorf("sqlsink: a table needs a name and columns: %q %q", t.Name, t.Columns)
	}
	for i, c := range t.Columns {
		if slices.Contains(t.Columns[:i], c) {
			return fmt.Errorf("sqlsink: table %s has column %q twice", t.Name, c)
		}
	}
	if !keyed {
		return nil
	}
	if len(t.Key) == 0 {
		return fmt.Errorf("sqlsink: table %s needs a key to be overwritten by", t.Name)
	}
	for _, k := range t.Key {
		if !slices.Contains(t.Columns, k) {
			return fmt.Errorf("sqlsink: key %q of table %s is none of its columns %q", k, t.Name, t.Columns)
		}
	}
	return nil
}
