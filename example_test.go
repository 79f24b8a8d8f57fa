package staunch_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/stdio"
	"github.com/staunchdev/staunch/state"
)

// run runs a small job over a store in memory, on one subtask an operator so
// that its output has one order.
func run(j *staunch.Job) {
	_, err := staunch.Run(context.Background(), j, staunch.Options{
		Storage: "mem:", Parallelism: 1, Log: slog.New(slog.DiscardHandler), Restart: staunch.NoRestart(),
	})
	if err != nil {
		fmt.Println(err)
	}
}

func ExampleCount() {
	j := staunch.NewJob("wordcount")
	lines := staunch.FromSlice(j, "lines", []string{"a b a", "B c"})
	words := staunch.FlatMapSeq(lines, strings.FieldsSeq)
	counts := staunch.Count(staunch.KeyBy(words, strings.ToLower), "count")
	staunch.To(counts, "print", stdio.Print[staunch.KV[string, int64]]())
	run(j)
	// Output:
	// {a 1}
	// {b 1}
	// {a 2}
	// {b 2}
	// {c 1}
}

// Order and Line are what the examples work on.
type (
	Order struct {
		ID, Customer string
		Cents        int64
	}
	Line struct {
		ID, Customer string
		Seq, Balance int64
	}
	account struct{ Orders, Cents int64 }
)

var orders = []Order{{"o-1", "ann", 300}, {"o-2", "bob", 50}, {"o-3", "ann", 120}}

// ledger keeps an account for each customer.
type ledger struct{ acc state.Value[account] }

func newLedger(s *staunch.Setup) *ledger {
	return &ledger{acc: state.NewValue[account](s, "account")}
}

func (l *ledger) Process(c *staunch.Ctx[Line], customer string, o Order) error {
	a := l.acc.Get()
	a.Orders++
	a.Cents += o.Cents
	l.acc.Set(a)
	c.Emit(Line{ID: o.ID, Customer: customer, Seq: a.Orders, Balance: a.Cents})
	return nil
}

func ExampleProcess() {
	j := staunch.NewJob("orders")
	in := staunch.FromSlice(j, "orders", orders)
	lines := staunch.Process(staunch.KeyBy(in, func(o Order) string { return o.Customer }), "account", newLedger)
	staunch.To(lines, "ledger", stdio.Print[Line]())
	run(j)
	// Output:
	// {o-1 ann 1 300}
	// {o-2 bob 1 50}
	// {o-3 ann 2 420}
}

// A processor of one function: its states are variables of the constructor.
func ExampleProcessFunc() {
	newDedupe := func(s *staunch.Setup) staunch.ProcessFunc[string, Order, Order] {
		s.Declare(staunch.Absorbing)
		seen := state.NewValue[bool](s, "seen", state.TTL(24*time.Hour))
		return func(c *staunch.Ctx[Order], customer string, o Order) error {
			if !seen.Get() {
				seen.Set(true)
				c.Emit(o)
			}
			return nil
		}
	}
	j := staunch.NewJob("dedupe")
	in := staunch.FromSlice(j, "orders", orders)
	first := staunch.Process(staunch.KeyBy(in, func(o Order) string { return o.Customer }), "first", newDedupe)
	staunch.To(first, "print", stdio.Print[Order]())
	run(j)
	// Output:
	// {o-1 ann 300}
	// {o-2 bob 50}
}

func ExampleDistinct() {
	j := staunch.NewJob("dedupe")
	in := staunch.FromSlice(j, "orders", orders)
	once := staunch.Distinct(staunch.KeyBy(in, func(o Order) string { return o.Customer }), "once", staunch.Forget(24*time.Hour))
	staunch.To(once, "print", stdio.Print[Order]())
	run(j)
	// Output:
	// {o-1 ann 300}
	// {o-2 bob 50}
}

func ExampleLatest() {
	type price struct {
		Item    string
		Version int
		Cents   int
	}
	j := staunch.NewJob("prices")
	in := staunch.FromSlice(j, "prices", []price{{"pen", 2, 90}, {"pen", 1, 80}, {"pen", 2, 95}, {"pen", 3, 100}})
	newest := staunch.Latest(staunch.KeyBy(in, func(p price) string { return p.Item }), "newest", func(p price) int { return p.Version })
	staunch.To(newest, "print", stdio.Print[price]())
	run(j)
	// Output:
	// {pen 2 90}
	// {pen 3 100}
}

func ExampleReduce() {
	j := staunch.NewJob("sums")
	n := staunch.FromSlice(j, "numbers", []int{1, 2, 3, 4, 5})
	parity := staunch.KeyBy(n, func(v int) bool { return v%2 == 0 })
	staunch.To(staunch.Reduce(parity, "sum", func(acc, v int) int { return acc + v }), "print", stdio.Print[int]())
	run(j)
	// Output:
	// 1
	// 2
	// 4
	// 6
	// 9
}

func ExampleAggregate() {
	mean := staunch.Aggregator[int64, [2]int64, float64]{
		Add:    func(acc [2]int64, v int64) [2]int64 { return [2]int64{acc[0] + v, acc[1] + 1} },
		Result: func(acc [2]int64) float64 { return float64(acc[0]) / float64(acc[1]) },
	}
	j := staunch.NewJob("mean")
	in := staunch.FromSlice(j, "numbers", []int64{3, 5, 10})
	all := staunch.KeyBy(in, func(int64) string { return "all" })
	staunch.To(staunch.Aggregate(all, "mean", mean), "print", stdio.Print[staunch.KV[string, float64]]())
	run(j)
	// Output:
	// {all 3}
	// {all 4}
	// {all 6}
}

func ExampleTryMap() {
	bad := staunch.NewSide[staunch.Failed[string]]("bad")
	j := staunch.NewJob("parse")
	in := staunch.FromSlice(j, "lines", []string{"1", "two", "3"})
	numbers := staunch.TryMap(in, strconv.Atoi, staunch.DeadLetter(bad), staunch.Named("parse"))
	staunch.To(staunch.Map(numbers, func(v int) int { return 10 * v }), "print", stdio.Print[int]())
	staunch.To(staunch.SideOf(numbers, bad), "print bad", stdio.Printf(func(f staunch.Failed[string]) string {
		return fmt.Sprintf("%s could not take %q", f.From, f.Value)
	}))
	run(j)
	// Unordered output:
	// 10
	// 30
	// parse could not take "two"
}

func ExampleEmitSide() {
	big := staunch.NewSide[Order]("big")
	j := staunch.NewJob("split")
	in := staunch.FromSlice(j, "orders", orders)
	small := staunch.FlatMap(in, func(c *staunch.Ctx[Order], o Order) error {
		if o.Cents > 200 {
			staunch.EmitSide(c, big, o)
		} else {
			c.Emit(o)
		}
		return nil
	})
	staunch.To(small, "small", stdio.Printf(func(o Order) string { return "small " + o.ID }))
	staunch.To(staunch.SideOf(small, big), "big", stdio.Printf(func(o Order) string { return "big " + o.ID }))
	run(j)
	// Unordered output:
	// small o-2
	// small o-3
	// big o-1
}

func ExampleFilter() {
	j := staunch.NewJob("filter")
	n := staunch.FromSlice(j, "numbers", []int{1, 2, 3, 4})
	staunch.To(staunch.Filter(n, func(v int) bool { return v > 2 }), "print", stdio.Print[int]())
	run(j)
	// Output:
	// 3
	// 4
}

func ExampleUnion() {
	j := staunch.NewJob("union")
	a := staunch.FromSlice(j, "a", []int{1, 2})
	b := staunch.FromSlice(j, "b", []int{3})
	staunch.To(staunch.Rebalance(staunch.Union(a, b)), "print", stdio.Print[int]())
	run(j)
	// Unordered output:
	// 1
	// 2
	// 3
}

// A timer of processing time fires once for a key.
func ExampleTimer() {
	j := staunch.NewJob("pauses")
	in := staunch.From(j, "steps", &connector.Pull[string]{
		Describe: connector.SourceSpec{Bounded: true, Why: "the steps are made up"},
		Splits:   func(context.Context) ([]connector.Split, error) { return []connector.Split{{ID: "steps"}}, nil },
		Read: func(ctx context.Context, s connector.Split, emit func(string, connector.Offset) error) error {
			if err := emit("ann", connector.Offset{N: 1}); err != nil {
				return err
			}
			<-paused
			return nil
		},
	})
	pauses := staunch.Process(staunch.KeyBy(in, func(user string) string { return user }), "pauses", newPauses)
	staunch.To(pauses, "print", stdio.Print[string]())
	run(j)
	// Output: ann has paused
}

var paused = make(chan struct{})

type pauses struct{ over staunch.Timer }

func newPauses(s *staunch.Setup) *pauses { return &pauses{over: s.ProcessingTimer("over")} }

func (p *pauses) Process(c *staunch.Ctx[string], user string, _ string) error {
	p.over.Set(c.Now().Add(10 * time.Millisecond)) // in place of what was set before
	return nil
}

func (p *pauses) OnTimer(c *staunch.Ctx[string], user string, t staunch.Timer) error {
	c.Emit(user + " has paused")
	close(paused)
	return nil
}

// Options of operators: what they are called, how many subtasks they have, and
// how records are encoded that leave the process.
func ExampleOption() {
	j := staunch.NewJob("options")
	in := staunch.FromSlice(j, "numbers", []int{1, 2, 3}, staunch.Parallelism(1), staunch.Rate(1000),
		staunch.Assign(func(s []connector.Split, parallelism int) []int { return make([]int, len(s)) }))
	tens := staunch.Map(in, func(v int) int { return 10 * v }, staunch.Named("tens"), staunch.NoChain(), staunch.EdgeCodec(codec.JSON[int]()))
	sums := staunch.Reduce(staunch.KeyBy(tens, func(int) bool { return true }), "sum", func(a, v int) int { return a + v }, staunch.FormerNames("total"))
	staunch.To(sums, "print", stdio.Print[int]())
	run(j)
	// Output:
	// 10
	// 30
	// 60
}

func ExampleJob_Plan() {
	j := staunch.NewJob("orders")
	in := staunch.FromSlice(j, "orders", orders)
	lines := staunch.Process(staunch.KeyBy(in, func(o Order) string { return o.Customer }), "account", newLedger)
	staunch.To(lines, "print", stdio.Print[Line]())
	p, err := j.Plan(staunch.Options{Parallelism: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(p)
	// Output:
	// job orders
	// mode exactly-once, parallelism 2, checkpoints every 1s, alignment auto (acts as aligned in this version)
	//
	// chain orders x2
	//   orders   source                       replayable, bounded (3 records in memory)
	// chain account x2
	//   account  process  <- orders hash      key string; state account: value
	//   print    sink     <- account chained  at-least-once (stdout)
	//
	// end to end: at-least-once
	//   weakest link: print: at-least-once (stdout), since a stream that is written cannot be taken back: what was written after the last checkpoint is written again
	//     needed: output that becomes visible at commit, or overwrites itself
	//     change: a transactional sink, or an idempotent one with a key
	//   holds: orders: replayable (3 records in memory)
}

// A wrong graph is one error that lists all faults.
func ExampleJob_Err() {
	j := staunch.NewJob("wrong")
	in := staunch.FromSlice(j, "in", []string{"x"})
	staunch.Count(staunch.KeyBy(in, func(string) float64 { return 0 }), "in")
	fmt.Println(j.Err())
	// Output:
	// KeyBy behind source "in": a bad key: float64: float64: a key holds no floats
	// duplicate name "in": a source and a count
	// no sink: end at least one stream with To
}

// Options.Require refuses a job that cannot hold what is required.
func ExampleGuarantee() {
	j := staunch.NewJob("orders")
	staunch.To(staunch.FromSlice(j, "orders", orders), "print", stdio.Print[Order]())
	_, err := staunch.Run(context.Background(), j, staunch.Options{Storage: "mem:", Require: staunch.ExactlyOnce})
	fmt.Println(err)
	// Output:
	// job "orders" delivers at-least-once, but exactly-once is required:
	//   print: at-least-once (stdout), since a stream that is written cannot be taken back: what was written after the last checkpoint is written again; change: a transactional sink, or an idempotent one with a key
}

// Start returns at once; the run tells events, and a checkpoint can be asked
// for.
func ExampleStart() {
	j := staunch.NewJob("events")
	staunch.To(staunch.FromSlice(j, "numbers", []int{1}), "print", stdio.Print[int]())
	x, err := staunch.Start(context.Background(), j, staunch.Options{
		Storage:    "mem:",
		Restart:    staunch.Backoff(time.Second, time.Minute),
		Checkpoint: staunch.CheckpointOptions{Interval: -1}, // only the final one
		Log:        slog.New(slog.DiscardHandler),
		OnEvent: func(e staunch.Event) {
			if c, ok := e.(staunch.Checkpointed); ok {
				fmt.Println("checkpoint", c.ID)
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := x.Wait()
	fmt.Println(r.Records["numbers"], r.Checkpoints, r.Restarts, err)
	// Output:
	// 1
	// checkpoint 1
	// 1 1 0 <nil>
}
