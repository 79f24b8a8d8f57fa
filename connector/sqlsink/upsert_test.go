package sqlsink

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/staunchdev/staunch/connector"
)

func at(generation uint64, subtask int) connector.Instance {
	return connector.Instance{Job: "job", Operator: "op", Subtask: subtask, Parallelism: 2, Lineage: 1, Generation: generation, Attempt: 1}
}

func writer[T any](t testing.TB, s connector.Sink[T], i connector.Instance) connector.Writer[T] {
	t.Helper()
	w, err := s.Writer(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// keyed is a table with the name as its key.
func keyed(t testing.TB) Table {
	table := totals(t, "")
	table.Key = []string{"name"}
	table.Create = "CREATE TABLE IF NOT EXISTS totals (name TEXT PRIMARY KEY, n INTEGER)"
	return table
}

func TestLastRowOfAKeyWins(t *testing.T) {
	table := keyed(t)
	s := Upsert(table, rowOf)
	if err := s.Fence(t.Context(), at(1, -1)); err != nil {
		t.Fatal(err)
	}
	w := writer(t, s, at(1, 0))
	want := map[string]int64{}
	for i := range 3 * flushRows { // over several flushes and batches, keys again and again
		v := total{fmt.Sprint("k", i%(flushRows+777)), int64(i)}
		want[v.Name] = v.N
		if err := w.Write(t.Context(), connector.Batch[total]{Values: []total{{v.Name, -1}, v}}); err != nil {
			t.Fatal(err)
		}
	}
	if cs, err := w.Prepare(t.Context(), 1); err != nil || cs != nil {
		t.Fatal(cs, err)
	}
	got := query(t, table.DSN, "SELECT name, n FROM totals")
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d", len(got), len(want))
	}
	for _, v := range got {
		if want[v.Name] != v.N {
			t.Fatalf("%s is %d, want %d", v.Name, v.N, want[v.Name])
		}
	}
}

func TestSubtasksShareADatabase(t *testing.T) {
	table := keyed(t)
	s := Upsert(table, rowOf)
	if err := s.Fence(t.Context(), at(1, -1)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		w := writer(t, s, at(1, i))
		wg.Go(func() {
			for n := range 20 {
				var b connector.Batch[total]
				for k := range 50 { // the same keys in all, in another order in each
					b.Values = append(b.Values, total{fmt.Sprint((k*[]int{1, 3, 7, 9}[i] + n) % 50), int64(n)})
				}
				if err := errors.Join(w.Write(t.Context(), b), second(w.Prepare(t.Context(), connector.CheckpointID(n+1)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(query(t, table.DSN, "SELECT name, n FROM totals WHERE n = 19")); n != 50 {
		t.Errorf("%d rows have the last value, want 50", n)
	}
	databases.Lock()
	if n := len(databases.open); n != 1 {
		t.Errorf("%d databases are open", n)
	}
	databases.Unlock()
}

func second[T any](_ T, err error) error { return err }

// The zombie's own handle: nothing of the fence may be kept in the process.
func TestFenceHoldsOverProcesses(t *testing.T) {
	table := keyed(t)
	other := table
	other.DSN += "?_pragma=busy_timeout(5000)" // another DSN, so another *sql.DB
	old, young := Upsert(table, rowOf), Upsert(other, rowOf)
	if err := old.Fence(t.Context(), at(1, -1)); err != nil {
		t.Fatal(err)
	}
	w := writer(t, old, at(1, 0))
	if err := w.Write(t.Context(), connector.Batch[total]{Values: []total{{"a", 1}}}); err != nil {
		t.Fatal(err)
	}
	if err := young.Fence(t.Context(), at(2, -1)); err != nil {
		t.Fatal(err)
	}
	if err := young.Fence(t.Context(), at(2, -1)); err != nil {
		t.Fatalf("the same generation again: %v", err)
	}
	if _, err := w.Prepare(t.Context(), 1); !errors.Is(err, connector.ErrFenced) {
		t.Errorf("got %v, want ErrFenced", err)
	}
	if rows := query(t, table.DSN, "SELECT name, n FROM totals"); len(rows) != 0 {
		t.Errorf("the zombie wrote %v", rows)
	}
	// Another operator has a fence of its own.
	i := at(1, -1)
	i.Operator = "other"
	if err := old.Fence(t.Context(), i); err != nil {
		t.Error(err)
	}
}

func TestFaultsOfRowsAndTables(t *testing.T) {
	table := keyed(t)
	if err := Upsert(table, rowOf).Fence(t.Context(), at(1, -1)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		row  []any
		want string
	}{
		{"too few", []any{"a"}, `1 values for the 2 columns ["name" "n"] of table totals, record {Name:x N:7}`},
		{"too many", []any{"a", 1, 2}, "3 values for the 2 columns"},
		{"no key", []any{nil, 1}, `key column "name" of table totals is NULL, record {Name:x N:7}`},
		{"no database type", []any{"a", struct{}{}}, `column "n" of table totals: unsupported type struct {}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := writer(t, Upsert(table, func(total) []any { return tt.row }), at(1, 0))
			err := w.Write(t.Context(), connector.Batch[total]{Values: []total{{"x", 7}}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	for _, tt := range []struct {
		change func(*Table)
		want   string
	}{
		{func(t *Table) { t.Name = "" }, "needs a name"},
		{func(t *Table) { t.Columns = nil }, "needs a name and columns"},
		{func(t *Table) { t.Columns = []string{"name", "name"} }, "twice"},
		{func(t *Table) { t.Key = nil }, "needs a key"},
		{func(t *Table) { t.Key = []string{"id"} }, "none of its columns"},
		{func(t *Table) { t.Driver = "oracle" }, "none of sqlite, pgx, postgres, mysql"},
	} {
		bad := table
		tt.change(&bad)
		s := Upsert(bad, rowOf)
		_, err := s.Writer(t.Context(), at(1, 0))
		for _, err := range []error{err, s.Fence(t.Context(), at(1, -1))} {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		}
	}
}

func TestStatements(t *testing.T) {
	table := Table{Name: "shop.to`t\"als", Columns: []string{"a b", "n", "m"}, Key: []string{"a b"}}
	only := Table{Name: "t", Columns: []string{"k"}, Key: []string{"k"}}
	for _, tt := range []struct{ driver, want, wantOnly string }{
		{"sqlite",
			"INSERT INTO \"shop\".\"to`t\"\"als\" (\"a b\", \"n\", \"m\") VALUES (?, ?, ?), (?, ?, ?) ON CONFLICT (\"a b\") DO UPDATE SET \"n\" = excluded.\"n\", \"m\" = excluded.\"m\"",
			`INSERT INTO "t" ("k") VALUES (?), (?) ON CONFLICT ("k") DO NOTHING`},
		{"pgx",
			"INSERT INTO \"shop\".\"to`t\"\"als\" (\"a b\", \"n\", \"m\") VALUES ($1, $2, $3), ($4, $5, $6) ON CONFLICT (\"a b\") DO UPDATE SET \"n\" = excluded.\"n\", \"m\" = excluded.\"m\"",
			`INSERT INTO "t" ("k") VALUES ($1), ($2) ON CONFLICT ("k") DO NOTHING`},
		{"mysql",
			"INSERT INTO `shop`.`to``t\"als` (`a b`, `n`, `m`) VALUES (?, ?, ?), (?, ?, ?) ON DUPLICATE KEY UPDATE `n` = VALUES(`n`), `m` = VALUES(`m`)",
			"INSERT INTO `t` (`k`) VALUES (?), (?) ON DUPLICATE KEY UPDATE `k` = `k`"},
	} {
		d, err := dialectOf(tt.driver)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.upsert(table, 2); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.driver, got, tt.want)
		}
		if got := d.upsert(only, 2); got != tt.wantOnly {
			t.Errorf("%s:\n%s\nwant\n%s", tt.driver, got, tt.wantOnly)
		}
	}
	d, _ := dialectOf("postgres")
	if got := d.bind("a = ? AND b = ?"); got != "a = $1 AND b = $2" {
		t.Errorf("got %s", got)
	}
}

func TestSQLiteIsOpenedDurable(t *testing.T) {
	dir := t.TempDir()
	for _, dsn := range []string{"plain.db", "sub/dir/plain.db", "file:%s/uri.db?_pragma=foreign_keys(1)"} {
		if strings.Contains(dsn, "%s") {
			dsn = fmt.Sprintf(dsn, dir)
		} else {
			dsn = filepath.Join(dir, dsn)
		}
		db, err := acquire(Table{Driver: "sqlite", DSN: dsn})
		if err != nil {
			t.Fatal(err)
		}
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "10000"} {
			var got string
			if err := db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s is %s, want %s (%v)", dsn, pragma, got, want, err)
			}
		}
		if err := db.release(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir + "/uri.db"); err != nil {
		t.Error(err)
	}
	got, err := sqliteDSN(filepath.Join(dir, "x.db") + "?_pragma=synchronous(1)&_txlock=exclusive")
	if err != nil || strings.Count(got, "synchronous") != 1 || strings.Count(got, "_txlock") != 1 {
		t.Errorf("what the DSN says does not stay: %s, %v", got, err)
	}
}

// answers gives one error after another.
type sqlState string

func (e sqlState) Error() string    { return "state " + string(e) }
func (e sqlState) SQLState() string { return string(e) }

func TestGivenUpTransactionsAreTriedAgainWhole(t *testing.T) {
	db, err := acquire(keyed(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.release()
	for _, tt := range []struct {
		err   error
		tries int
	}{
		{sqlState("40P01"), 3},
		{fmt.Errorf("upsert: %w", sqlState("40001")), 3},
		{errors.New("Error 1213 (40001): Deadlock found when trying to get lock"), 3},
		{sqlState("23505"), 1},
		{connector.ErrFenced, 1},
	} {
		tries := 0
		err := db.transact(t.Context(), func(tx *sql.Tx) error {
			if tries++; tries < 3 {
				return tt.err
			}
			return nil
		})
		if tries != tt.tries || (err == nil) != (tt.tries == 3) {
			t.Errorf("%v: %d tries, then %v", tt.err, tries, err)
		}
	}
	tries := 0
	ctx, cancel := context.WithCancel(t.Context())
	if err := db.transact(ctx, func(*sql.Tx) error { tries++; cancel(); return sqlState("40001") }); tries != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %d tries, %v", tries, err)
	}
	tries = 0
	if err := db.transact(t.Context(), func(*sql.Tx) error { tries++; return sqlState("40001") }); tries != attempts || err == nil {
		t.Errorf("never solved: %d tries, %v", tries, err)
	}
}

// Writers that share keys take their locks in the same order.
func TestKeysAreInOneOrder(t *testing.T) {
	values := [][]any{{int64(-5), "b"}, {int64(-5), "ba"}, {int64(3), "a"}, {int64(3), "aa"}, {int64(300), ""}}
	var keys []string
	for _, row := range values {
		var k []byte
		for _, v := range row {
			var err error
			if k, err = appendKey(k, v); err != nil {
				t.Fatal(err)
			}
		}
		keys = append(keys, string(k))
	}
	if !slices.IsSorted(keys) {
		t.Errorf("%q", keys)
	}
	seen := map[string]bool{}
	for _, v := range []any{int64(1), 1.0, true, false, "1", []byte("1"), "", []byte{}} {
		k, err := appendKey(nil, v)
		if err != nil || seen[string(k)] {
			t.Errorf("%T %v: %q, %v", v, v, k, err)
		}
		seen[string(k)] = true
	}
}

// A row may refer to memory of its record, which is used again after Write.
func TestRowsDoNotAliasRecords(t *testing.T) {
	table := totals(t, "")
	table.Key = []string{"name"}
	table.Create = "CREATE TABLE IF NOT EXISTS totals (name BLOB PRIMARY KEY, n BLOB)"
	s := Upsert(table, func(b []byte) []any { return []any{b, b} })
	if err := s.Fence(t.Context(), at(1, -1)); err != nil {
		t.Fatal(err)
	}
	w := writer(t, s, at(1, 0))
	record := []byte("17")
	if err := w.Write(t.Context(), connector.Batch[[]byte]{Values: [][]byte{record}}); err != nil {
		t.Fatal(err)
	}
	copy(record, "99")
	if _, err := w.Prepare(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	got := query(t, table.DSN, "SELECT CAST(name AS TEXT), CAST(n AS INTEGER) FROM totals")
	if want := []total{{"17", 17}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
