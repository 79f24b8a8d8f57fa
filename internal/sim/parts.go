package sim

import (
	"context"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
)

// Parts are what a job is built of that takes part in a simulation: its sources,
// its sinks, and what the seed has decided about its shape. Each process builds
// the job anew.
type Parts struct {
	w *world
	p *process
}

// Job builds the job that is simulated:
//
//	source a ──┐hash by Key         ┌─ ledger (sink)
//	source b ──┼──── account ───────┤hash by BucketOf
//	[source c]─┘                    └──── [bucket ── totals (sink)]
//
// The operators fold by Enter and SumUp. Before they look at a record they call
// Parts.Apply.
type Job func(*Parts) cluster.Job

// The records, and the states of keys.
type (
	Order   = order
	Line    = line
	Total   = total
	Account = account
)

// Enter enters an order into an account, and SumUp a line into that of a bucket.
func Enter(a Account, o Order) (Account, Line) { return enter(a, o) }
func SumUp(a Account, l Line) (Account, Total) { return sumUp(a, l) }

// BucketOf is the key of the second stage.
func BucketOf(l Line) uint32 { return bucketOf(l) }

// Sources is how many sources there are, Stages how many keyed operators.
func (x *Parts) Sources() int { return x.w.sources }
func (x *Parts) Stages() int  { return x.w.stages }

// Accounts is the parallelism of the first keyed operator, and Parallelism that
// of anything else, at most so much. They differ from start to start.
func (x *Parts) Accounts() int { return x.w.parallel(x.w.accounts, 3) }

func (x *Parts) Parallelism(most int) int { return x.w.parallel(0, most) }

// SinkParallelism is that of what stands before the sink, so that the two are a
// chain, or another.
func (x *Parts) SinkParallelism(before int) int {
	if x.w.rng.IntN(2) == 0 {
		return before
	}
	return 1 + x.w.rng.IntN(2)
}

// Source returns a source.
func (x *Parts) Source(s int) connector.Source[Order] { return source{x.p, s} }

// Ledger and Totals return the sinks.
func (x *Parts) Ledger() connector.TransactionalSink[Line] {
	x.p.sinks["ledger"] = true
	return &sink[line]{committer{x.p, x.w.bank, "ledger"}, func(l line) entry { return entry{of: 'l', line: l} }}
}

func (x *Parts) Totals() connector.TransactionalSink[Total] {
	x.p.sinks["totals"] = true
	return &sink[total]{committer{x.p, x.w.bank, "totals"}, func(t total) entry { return entry{of: 't', total: t} }}
}

// Apply says that an operator is about to change its state for an order. It
// takes time, and fails or panics at times.
func (x *Parts) Apply(operator string, o Order) error {
	w := x.w
	if w.failNext || w.happens(w.userFails) {
		w.failNext = false
		if w.slowLeader != 0 { // it reads of the failure late, and what came meanwhile after it
			x.p.leaderStands(3 * w.interval)
		}
		if w.rng.IntN(2) == 0 {
			panic(errInjected)
		}
		return errInjected
	}
	w.apply(x.p, operator, o)
	w.spend(x.p.cost[operator])
	return nil
}

// source is a connector.Source of the input.
type source struct {
	p *process
	s int
}

func (source) Spec() connector.SourceSpec {
	return connector.SourceSpec{Replayable: true, Bounded: true}
}

func (s source) Enumerator(context.Context, connector.Instance) (connector.Enumerator, error) {
	s.p.yield()
	all := s.p.w.in.sources[s.s]
	return &enumerator{p: s.p, all: all, known: make([]byte, len(all))}, nil
}

func (s source) Reader(context.Context, connector.Instance) (connector.Reader[order], error) {
	s.p.yield()
	return &reader{p: s.p, in: s.p.w.in}, nil
}

// sink is a connector.TransactionalSink of the bank.
type sink[T any] struct {
	committer
	entry func(T) entry
}

func (*sink[T]) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Transactional}
}

func (s *sink[T]) Writer(_ context.Context, i connector.Instance) (connector.Writer[T], error) {
	s.p.yield()
	return &writer[T]{p: s.p, b: s.b, i: i, entry: s.entry}, nil
}

// Mode is what the job is to guarantee.
func (x *Parts) Mode() checkpoint.Mode { return x.w.Mode }
