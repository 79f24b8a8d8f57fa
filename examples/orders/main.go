// Orders keeps, for each customer, how many orders there were and what they
// sum up to. Every order becomes one line of a ledger, in files that become
// visible when a checkpoint is complete; the running totals are kept in SQLite.
//
//	go run ./examples/orders                         # makes up orders
//	go run ./examples/orders --input orders.jsonl    # reads {"id","customer","cents","time"} a line
//
// Kill it at any moment and start it again: nothing is lost and nothing is
// counted twice.
package main

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/file"
	"github.com/staunchdev/staunch/connector/gen"
	"github.com/staunchdev/staunch/connector/sqlsink"
	"github.com/staunchdev/staunch/state"
)

// Order is a line of the input.
type Order struct {
	ID       string    `json:"id"`
	Customer string    `json:"customer"`
	Cents    int64     `json:"cents"`
	Time     time.Time `json:"time"`
}

// checked refuses an order that cannot be booked. A bad record stops the job
// with the file and the line, and nothing is lost: mend the line and go on.
type checked struct{ codec.Codec[Order] }

// Decode implements codec.Codec.
func (c checked) Decode(b []byte) (Order, error) {
	o, err := c.Codec.Decode(b)
	if err == nil && (o.ID == "" || o.Customer == "") {
		err = errors.New("an order needs an id and a customer")
	}
	return o, err
}

// Line is a line of the ledger: Seq says the how-manieth order of the customer
// it is, Balance what the customer's orders sum up to with it.
type Line struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Seq      int64  `json:"seq"`
	Balance  int64  `json:"balance_cents"`
}

// account is what is kept of a customer.
type account struct{ Orders, Cents int64 }

type ledger struct{ account state.Value[account] }

func newLedger(s *staunch.Setup) *ledger {
	return &ledger{account: state.NewValue[account](s, "account")}
}

func (l *ledger) Process(c *staunch.Ctx[Line], customer string, o Order) error {
	a := l.account.Get()
	a.Orders++
	a.Cents += o.Cents
	l.account.Set(a)
	c.Emit(Line{ID: o.ID, Customer: customer, Seq: a.Orders, Balance: a.Cents})
	return nil
}

var (
	input = flag.String("input", "", "`file or directory` of orders as JSON lines; empty: they are made up")
	count = flag.Uint("count", 0, "how many orders to make up; 0: without end")
	data  = flag.String("data", "./orders-data", "`directory` of checkpoints and results")
)

// splits is into how many parts the made-up orders are divided, whatever the
// parallelism: the parts are what positions in checkpoints refer to.
const splits = 4

func build() *staunch.Job {
	var src connector.Source[Order] = &gen.Source[Order]{Make: makeOrder, Count: int64(*count), Splits: splits}
	if *input != "" {
		src = file.NewSource(*input, checked{codec.JSON[Order]()})
	}
	out := filepath.Join(*data, "out")

	j := staunch.NewJob("orders")
	j.Defaults(staunch.Options{Storage: filepath.Join(*data, "checkpoints")})
	orders := staunch.From(j, "orders", src)
	lines := staunch.Process(staunch.KeyBy(orders, customerOf), "account", newLedger)
	segments := file.NewSink(filepath.Join(out, "ledger"), codec.JSON[Line]())
	segments.SetAside = true // a fresh run begins with an empty ledger
	staunch.To(lines, "ledger", segments)
	staunch.To(lines, "totals", sqlsink.Upsert(sqlsink.Table{
		Driver: "sqlite", DSN: filepath.Join(out, "totals.db"), Name: "totals",
		Columns: []string{"customer", "orders", "cents"}, Key: []string{"customer"},
		Create: "CREATE TABLE IF NOT EXISTS totals(customer TEXT PRIMARY KEY, orders INTEGER, cents INTEGER)",
		Renew:  "DELETE FROM totals",
	}, func(l Line) []any { return []any{l.Customer, l.Seq, l.Balance} }))
	return j
}

func customerOf(o Order) string { return o.Customer }

// makeOrder is order i of a split: the same whenever it is asked for.
func makeOrder(split int, i int64) Order {
	x := uint64(i)*splits + uint64(split) + 1
	x ^= x >> 31
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 29
	return Order{
		ID:       fmt.Sprintf("o-%d-%d", split, i),
		Customer: fmt.Sprintf("c-%d", x%10_000),
		Cents:    int64(x>>40%5_000) + 1,
		Time:     time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second),
	}
}

func main() { staunch.Main(build) }
