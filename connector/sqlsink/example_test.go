package sqlsink_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/sqlsink"
)

type balance struct {
	Customer string
	Cents    int64
}

// show prints the table.
func show(dsn string) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		panic(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT customer, cents FROM balances ORDER BY customer")
	if err != nil {
		panic(err)
	}
	defer rows.Close()
	for rows.Next() {
		var b balance
		rows.Scan(&b.Customer, &b.Cents)
		fmt.Println(b.Customer, b.Cents)
	}
}

func table() (t sqlsink.Table, remove func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	return sqlsink.Table{
		Driver: "sqlite", DSN: filepath.Join(dir, "shop.db"),
		Name: "balances", Columns: []string{"customer", "cents"}, Key: []string{"customer"},
		Create: "CREATE TABLE IF NOT EXISTS balances (customer TEXT PRIMARY KEY, cents INTEGER)",
	}, func() { os.RemoveAll(dir) }
}

// The last row of a key stays.
func ExampleUpsert() {
	t, remove := table()
	defer remove()
	ctx := context.Background()
	i := connector.Instance{Job: "shop", Operator: "balances", Generation: 1, Attempt: 1}
	sink := sqlsink.Upsert(t, func(b balance) []any { return []any{b.Customer, b.Cents} })
	if err := sink.Fence(ctx, i); err != nil {
		panic(err)
	}
	w, err := sink.Writer(ctx, i)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	w.Write(ctx, connector.Batch[balance]{Values: []balance{{"c-1", 100}, {"c-2", 50}, {"c-1", 175}}})
	if _, err := w.Prepare(ctx, 1); err != nil {
		panic(err)
	}
	show(t.DSN)
	// Output:
	// c-1 175
	// c-2 50
}

// Rows are inserted once, however often they are committed.
func ExampleLedger() {
	t, remove := table()
	defer remove()
	ctx := context.Background()
	i := connector.Instance{Job: "shop", Operator: "balances", Generation: 1, Attempt: 1}
	sink := sqlsink.Ledger(t, func(b balance) []any { return []any{b.Customer, b.Cents} })
	if err := sink.Recover(ctx, i, nil); err != nil {
		panic(err)
	}
	w, err := sink.Writer(ctx, i)
	if err != nil {
		panic(err)
	}
	defer w.Close()
	w.Write(ctx, connector.Batch[balance]{Values: []balance{{"c-1", 100}, {"c-2", 50}}})
	cs, err := w.Prepare(ctx, 1)
	if err != nil {
		panic(err)
	}
	for range 2 {
		if err := sink.Commit(ctx, cs); err != nil {
			panic(err)
		}
	}
	show(t.DSN)
	// Output:
	// c-1 100
	// c-2 50
}
