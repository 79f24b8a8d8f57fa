package powerloss

import (
	"errors"
	"path/filepath"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector/file"
	"github.com/staunchdev/staunch/state"
)

type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

type line struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Seq      int64  `json:"seq"`
	Balance  int64  `json:"balance_cents"`
}

type account struct{ Orders, Cents int64 }

var errOnce = errors.New("the function fails once")

// newJob is the main job without its totals: how SQLite writes them is not
// recorded. Rate is in orders a second; fail, if not nil, says at which orders the function fails.
func newJob(input, out string, disk file.Disk, rate int64, fail func(o order) bool) *staunch.Job {
	j := staunch.NewJob("orders")
	orders := staunch.From(j, "orders", file.NewSource(input, codec.JSON[order]()), staunch.Rate(rate))
	newLedger := func(s *staunch.Setup) staunch.ProcessFunc[string, order, line] {
		accounts := state.NewValue[account](s, "account")
		return func(c *staunch.Ctx[line], customer string, o order) error {
			if fail != nil && fail(o) {
				return errOnce
			}
			a := accounts.Get()
			a.Orders++
			a.Cents += o.Cents
			accounts.Set(a)
			c.Emit(line{ID: o.ID, Customer: customer, Seq: a.Orders, Balance: a.Cents})
			return nil
		}
	}
	lines := staunch.Process(staunch.KeyBy(orders, func(o order) string { return o.Customer }), "account", newLedger)
	staunch.To(lines, "ledger", file.NewSink(filepath.Join(out, "ledger"), codec.JSON[line]()).WithDisk(disk))
	return j
}
