// Idempotent is a job whose state a repeated record does not change: for each
// customer the largest order, and which ids were seen. So it ends exact though
// the mode is at-least-once.
package main

import (
	"flag"
	"path/filepath"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector/file"
	"github.com/staunchdev/staunch/state"
)

// Order is a line of the input.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

// Seen is what is known of a customer after an order.
type Seen struct {
	Customer string `json:"customer"`
	Orders   int64  `json:"orders"`  // different ids
	Largest  int64  `json:"largest"` // cents
}

func newSeen(s *staunch.Setup) staunch.ProcessFunc[string, Order, Seen] {
	s.Declare(staunch.Absorbing | staunch.Reemits)
	ids := state.NewMap[string, bool](s, "ids")
	largest := state.NewValue[int64](s, "largest")
	return func(c *staunch.Ctx[Seen], customer string, o Order) error {
		if max, ok := largest.Lookup(); !ok || o.Cents > max {
			largest.Set(o.Cents)
		}
		ids.Set(o.ID, true)
		c.Emit(Seen{Customer: customer, Orders: int64(ids.Len()), Largest: largest.Get()})
		return nil
	}
}

var (
	input = flag.String("input", "", "`directory` of orders as JSON lines")
	data  = flag.String("data", "", "`directory` of checkpoints and results")
)

func build() *staunch.Job {
	j := staunch.NewJob("idempotent")
	j.Defaults(staunch.Options{Storage: filepath.Join(*data, "checkpoints"), Mode: staunch.AtLeastOnce})
	orders := staunch.From(j, "orders", file.NewSource(*input, codec.JSON[Order]()))
	seen := staunch.Process(staunch.KeyBy(orders, func(o Order) string { return o.Customer }), "seen", newSeen)
	staunch.To(seen, "seen-lines", file.NewSink(filepath.Join(*data, "out", "seen"), codec.JSON[Seen]()))
	return j
}

func main() { staunch.Main(build) }
