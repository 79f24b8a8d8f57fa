package staunch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/sim"
	"github.com/staunchdev/staunch/state"
)

// TestSimulatePublicOperators runs the simulator over a job that is written
// with the public API: Process, values, lists and maps of state, Union, chains.
func TestSimulatePublicOperators(t *testing.T) {
	base := rand.Uint64N(1 << 32)
	for _, mode := range []checkpoint.Mode{checkpoint.ExactlyOnce, checkpoint.AtLeastOnce, checkpoint.AtMostOnce} {
		seeds := uint64(0)
		for began := time.Now(); time.Since(began) < 2*time.Second; seeds++ {
			if r := sim.Run(sim.Options{Seed: base + seeds, Mode: mode, Job: simulated}); r.Err != nil {
				t.Fatalf("%v: seed %d: %v", mode, base+seeds, r.Err)
			}
		}
		t.Logf("%v: %d seeds from %d", mode, seeds, base)
	}
}

func simulated(x *sim.Parts) cluster.Job {
	j := staunch.NewJob("sim")
	var all []staunch.Stream[sim.Order]
	for s := range x.Sources() {
		all = append(all, staunch.From(j, string(rune('a'+s)), x.Source(s), staunch.Parallelism(x.Parallelism(2))))
	}
	orders := staunch.Union(all[0], all[1:]...)
	n := x.Accounts()
	lines := staunch.Process(staunch.KeyBy(orders, func(o sim.Order) uint32 { return o.Key }), "account",
		func(s *staunch.Setup) *accounts {
			return &accounts{x, state.NewValue[sim.Account](s, "account"), state.NewMap[uint32, uint32](s, "behind"), s.ProcessingTimer("alarm")}
		}, staunch.Parallelism(n))
	staunch.To(lines, "ledger", x.Ledger(), staunch.Parallelism(x.SinkParallelism(n)))
	if x.Stages() == 2 {
		n := x.Parallelism(2)
		totals := staunch.Process(staunch.KeyBy(lines, sim.BucketOf), "bucket",
			func(s *staunch.Setup) *buckets {
				return &buckets{x, state.NewValue[sim.Account](s, "sums"), state.NewList[int64](s, "balances")}
			}, staunch.Parallelism(n))
		staunch.To(totals, "totals", x.Totals(), staunch.Parallelism(x.SinkParallelism(n)))
	}
	job, err := staunch.Runnable(j, staunch.Options{})
	if err != nil {
		panic(err)
	}
	return job
}

// accounts also remembers, by split, the order behind which it has come: orders
// of a split and key come in their order, once where nothing is repeated.
type accounts struct {
	x       *sim.Parts
	account state.Value[sim.Account]
	behind  state.Map[uint32, uint32]
	alarm   staunch.Timer
}

func (a *accounts) Process(c *staunch.Ctx[sim.Line], _ uint32, o sim.Order) error {
	if err := a.x.Apply("account", o); err != nil {
		return err
	}
	if a.x.Mode() != checkpoint.AtLeastOnce && a.behind.Get(o.Split) > o.Pos {
		return fmt.Errorf("order %+v comes behind %d", o, a.behind.Get(o.Split))
	}
	a.behind.Set(o.Split, o.Pos+1)
	acc, line := sim.Enter(a.account.Get(), o)
	if a.x.Alarms() {
		acc, line = a.x.Tend(acc, line, clock{a.alarm})
	}
	a.account.Set(acc)
	c.Emit(line)
	return nil
}

func (a *accounts) OnTimer(c *staunch.Ctx[sim.Line], _ uint32, _ staunch.Timer) error {
	acc, line := a.x.Ring(a.account.Get(), a.account.Get().Due)
	a.account.Set(acc)
	c.Emit(line)
	return nil
}

// clock is a timer as the simulator sees it.
type clock struct{ staunch.Timer }

func (c clock) Set(at int64) { c.Timer.Set(time.Unix(0, at)) }
func (c clock) At() (int64, bool) {
	at, ok := c.Timer.At()
	return at.UnixNano(), ok
}

// buckets also keeps all balances that it has summed up.
type buckets struct {
	x        *sim.Parts
	sums     state.Value[sim.Account]
	balances state.List[int64]
}

func (b *buckets) Process(c *staunch.Ctx[sim.Total], _ uint32, l sim.Line) error {
	if err := b.x.Apply("bucket", l.AppliedOrder()); err != nil {
		return err
	}
	acc, total := sim.SumUp(b.sums.Get(), l)
	b.sums.Set(acc)
	b.balances.Append(l.Balance)
	var sum int64
	for balance := range b.balances.All() {
		sum += balance
	}
	if sum != total.Sum || b.balances.Len() != int(total.N) {
		return fmt.Errorf("the list has %d balances that add up to %d, the sum is %+v", b.balances.Len(), sum, total)
	}
	c.Emit(total)
	return nil
}
