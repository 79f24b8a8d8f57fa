package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// database is a *sql.DB that the subtasks of this process share. It is closed
// when the last of them lets it go.
type database struct {
	*sql.DB
	dialect
	driver, dsn string
	users       int // guarded by databases
}

// databases are those in use, by driver and DSN.
var databases = struct {
	sync.Mutex
	open map[[2]string]*database
}{open: make(map[[2]string]*database)}

// acquire opens the database of t, or takes the one that is open.
func acquire(t Table) (*database, error) {
	d, err := dialectOf(t.Driver)
	if err != nil {
		return nil, err
	}
	databases.Lock()
	defer databases.Unlock()
	key := [2]string{t.Driver, t.DSN}
	if db := databases.open[key]; db != nil {
		db.users++
		return db, nil
	}
	dsn := t.DSN
	if t.Driver == "sqlite" {
		if dsn, err = sqliteDSN(dsn); err != nil {
			return nil, err
		}
	}
	db, err := sql.Open(t.Driver, dsn)
	if err != nil {
		return nil, fmt.Errorf("open %s database: %w", t.Driver, err)
	}
	if d.single {
		// SQLite has one writer anyway; a second connection would only wait for it.
		db.SetMaxOpenConns(1)
	}
	databases.open[key] = &database{DB: db, dialect: d, driver: t.Driver, dsn: t.DSN, users: 1}
	return databases.open[key], nil
}

func (db *database) release() error {
	databases.Lock()
	defer databases.Unlock()
	if db.users--; db.users > 0 {
		return nil
	}
	delete(databases.open, [2]string{db.driver, db.dsn})
	return db.DB.Close()
}

// sqliteDSN makes the directory of the file and adds what the sinks rely on,
// unless the DSN says otherwise: transactions take the write lock when they
// begin, so that the fence row that was read stands until the commit; the log is
// synced at each commit; other processes are waited for.
func sqliteDSN(dsn string) (string, error) {
	name, query, _ := strings.Cut(dsn, "?")
	path := strings.TrimPrefix(name, "file:")
	memory := path == "" || path == ":memory:" || strings.Contains(query, "mode=memory")
	if !memory {
		if err := mkdirAll(filepath.Dir(path)); err != nil {
			return "", fmt.Errorf("make directory of SQLite database: %w", err)
		}
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", fmt.Errorf("sqlsink: DSN of SQLite: %w", err)
	}
	add := func(parameter string) {
		if query != "" {
			query += "&"
		}
		query += parameter
	}
	set := strings.ToLower(strings.Join(values["_pragma"], " "))
	for _, p := range []struct{ name, value string }{
		{"busy_timeout", "10000"}, // first: switching to WAL may have to wait
		{"journal_mode", "wal"},
		{"synchronous", "full"},
	} {
		if !strings.Contains(set, p.name) {
			add("_pragma=" + p.name + "(" + p.value + ")")
		}
	}
	if !values.Has("_txlock") {
		add("_txlock=immediate")
	}
	return name + "?" + query, nil
}

// mkdirAll makes dir and what is missing above it durable: SQLite syncs the
// directory that the file is in, but not the entry of that directory.
func mkdirAll(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := mkdirAll(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// attempts is how often a transaction is tried that the database gave up.
const attempts = 6

// transact runs f in a transaction, again if the database chose it to end a
// deadlock.
func (db *database) transact(ctx context.Context, f func(tx *sql.Tx) error) error {
	for n := 1; ; n++ {
		err := db.once(ctx, f)
		if err == nil || n == attempts || !givenUp(err) {
			return err
		}
		pause := time.NewTimer(time.Duration(n*n) * 10 * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(err, ctx.Err())
		case <-pause.C:
		}
	}
}

func (db *database) once(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(tx); err != nil {
		return errors.Join(err, ignoreDone(tx.Rollback()))
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// givenUp says whether err is a deadlock, a serialisation failure or a lock
// timeout, after which the whole transaction may be tried again. It knows the
// drivers' errors by their methods and words, since none is imported.
func givenUp(err error) bool {
	var state interface{ SQLState() string } // pgx, lib/pq
	if errors.As(err, &state) {
		switch state.SQLState() {
		case "40001", "40P01", "55P03":
			return true
		}
	}
	var code interface{ Code() int } // modernc.org/sqlite
	if errors.As(err, &code) {
		switch code.Code() & 0xff {
		case 5, 6: // SQLITE_BUSY, SQLITE_LOCKED
			return true
		}
	}
	text := err.Error() // go-sql-driver/mysql: deadlock, lock wait timeout
	return strings.Contains(text, "Error 1213") || strings.Contains(text, "Error 1205")
}
