package sqlsink

import (
	"database/sql"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/connectortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type total struct {
	Name string
	N    int64
}

func makeTotal(i int) total { return total{Name: "n" + string(rune('a'+i%26)), N: int64(i)} }

func rowOf(v total) []any { return []any{v.Name, v.N} }

func totals(t testing.TB, key string) Table {
	return Table{
		Driver: "sqlite", DSN: filepath.Join(t.TempDir(), "sub", "totals.db"),
		Name: "totals", Columns: []string{"name", "n"}, Key: []string{"n"},
		Create: "CREATE TABLE IF NOT EXISTS totals (name TEXT, n INTEGER" + key + ")",
	}
}

func query(t testing.TB, dsn, q string) []total {
	t.Helper()
	db, err := sql.Open("sqlite", dsn+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(q)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []total
	for rows.Next() {
		var v total
		if err := rows.Scan(&v.Name, &v.N); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUpsertConforms(t *testing.T) {
	table := totals(t, " PRIMARY KEY")
	connectortest.Sink(t,
		func(*testing.T) connector.Sink[total] { return Upsert(table, rowOf) },
		makeTotal,
		func(t *testing.T) []total { return query(t, table.DSN, "SELECT name, n FROM totals") })
}

func TestLedgerConforms(t *testing.T) {
	table := totals(t, "")
	connectortest.Sink(t,
		func(*testing.T) connector.Sink[total] { return Ledger(table, rowOf) },
		makeTotal,
		func(t *testing.T) []total { return query(t, table.DSN, "SELECT name, n FROM totals") })
}
