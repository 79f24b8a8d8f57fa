package task

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/transport"
)

// endless is a reader of so many numbers.
type endless struct {
	n, at int64
	ends  bool
	seed  uint64
}

func (r *endless) Add(connector.Split) error  { return nil }
func (r *endless) Available() <-chan struct{} { return nil }
func (r *endless) Close() error               { return nil }

func (r *endless) Poll(b *connector.Batch[uint64], max int) (string, connector.Offset, error) {
	n := min(int64(max), r.n-r.at)
	if n == 0 && r.ends {
		return "s", connector.Offset{N: r.at}, io.EOF
	}
	if n == 0 {
		return "", connector.Offset{}, connector.ErrEmpty
	}
	x := r.seed
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
		b.Values = append(b.Values, x>>44)
	}
	r.seed = x
	r.at += n
	return "s", connector.Offset{N: r.at}, nil
}

// total is a keyed operator over an array of 4096 keys.
type total struct {
	operator.Base
	sums [4096]uint64
	n    int64
}

func (o *total) Watermark(int64) error { return nil }

func (o *total) Process(r *element.Run[uint64]) error {
	if r.Hashes != nil {
		for i, v := range r.Values {
			o.sums[r.Hashes[i]&4095] += v
		}
	} else {
		for _, v := range r.Values {
			o.sums[v&4095] += v
		}
	}
	o.n += int64(len(r.Values))
	return nil
}

type quiet struct{ live }

func (*quiet) Ready(checkpoint.SubtaskID, checkpoint.Epoch)         {}
func (*quiet) Ended(checkpoint.SubtaskID, checkpoint.Epoch)         {}
func (*quiet) Failed(checkpoint.SubtaskID, checkpoint.Epoch, error) {}

// endings tells of the end of each subtask.
type endings struct {
	*quiet
	ended chan<- struct{}
}

func (e endings) Ended(checkpoint.SubtaskID, checkpoint.Epoch) { e.ended <- struct{}{} }

func benchConfig(id string, l *quiet) Config {
	return Config{
		ID: checkpoint.SubtaskID{Vertex: id}, Epoch: epoch, Mode: checkpoint.ExactlyOnce, Lead: l, Exec: l,
		Instance: connector.Instance{Parallelism: 1}, Now: func() int64 { return time.Now().UnixNano() },
	}
}

func sourceOf(r *endless, outs []any) operator.Made {
	return operator.NewSource(operator.SourceConfig[uint64]{
		Name:   "numbers",
		Reader: func(context.Context, connector.Instance) (connector.Reader[uint64], error) { return r, nil },
		Outs:   outs,
	})
}

func mustTask(b testing.TB, cfg Config) *Task {
	t, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return t
}

// chainTask is source -> map -> filter (keeps 7 of 8) -> total in one subtask.
func chainTask(b testing.TB, r *endless, l *quiet) (*Task, *total) {
	sum := &total{}
	filter := operator.NewFilter("filter", func(v uint64) bool { return v&7 != 0 }, []any{operator.NewEntry[uint64](sum).Input()})
	double := operator.NewMap("map", func(v uint64) uint64 { return v + 1 }, []any{filter.Entries[0].Input()})
	source := sourceOf(r, []any{double.Entries[0].Input()})
	cfg := benchConfig("chain", l)
	cfg.Ops = []Op{{Name: "numbers", Op: source.Op}, {Name: "map", Op: double.Op}, {Name: "filter", Op: filter.Op}, {Name: "total", Op: sum}}
	t := mustTask(b, cfg)
	t.Deliver(AddSplits{[]checkpoint.Split{{ID: "s"}}})
	return t, sum
}

func BenchmarkChain(b *testing.B) {
	l := &quiet{live{ctx: b.Context()}}
	r := &endless{}
	t, sum := chainTask(b, r, l)
	for t.phase != running {
		t.Step()
	}
	r.n = 1 << 16
	stepAll(t)
	b.ReportAllocs()
	r.n, r.at = int64(b.N), 0
	b.ResetTimer()
	stepAll(t)
	b.StopTimer()
	if sum.n == 0 {
		b.Fatal("nothing arrived")
	}
}

// BenchmarkChainByHand is what BenchmarkChain is to be measured against.
func BenchmarkChainByHand(b *testing.B) {
	var sums [4096]uint64
	x := uint64(0)
	b.ResetTimer()
	for range b.N {
		x = x*6364136223846793005 + 1442695040888963407
		v := x>>44 + 1
		if v&7 != 0 {
			sums[v&4095] += v
		}
	}
	if sums[1] == 1 {
		b.Fatal("impossible")
	}
}

// shuffle is two sources, a hash edge, and two keyed operators.
func shuffle(b testing.TB, l *quiet, readers [2]*endless) (tasks []*Task, sums [2]*total) {
	hash := func(seed uint64) (func(uint64) uint64, error) { return keyhash.For[uint64](seed) }
	var rings [2][2]*transport.Ring
	for i := range 2 {
		rings[i] = [2]*transport.Ring{transport.NewRing(8), transport.NewRing(8)}
		edge := operator.NewEdge[uint64](operator.EdgeConfig{Kind: graph.Hash, Hash: hash, Outs: []operator.Channel{rings[i][0], rings[i][1]}})
		source := sourceOf(readers[i], []any{edge.Input()})
		cfg := benchConfig("numbers", l)
		cfg.Ops, cfg.Edges = []Op{{Name: "numbers", Op: source.Op}}, []operator.EdgeWriter{edge}
		t := mustTask(b, cfg)
		t.Deliver(AddSplits{[]checkpoint.Split{{ID: "s"}}})
		t.Deliver(NoMoreSplits{})
		tasks = append(tasks, t)
	}
	for k := range 2 {
		sums[k] = &total{}
		cfg := benchConfig("total", l)
		cfg.Ops, cfg.Entries = []Op{{Name: "total", Op: sums[k]}}, []operator.Entry{operator.NewEntry[uint64](sums[k])}
		for i := range 2 {
			cfg.Inputs = append(cfg.Inputs, Input{Ring: rings[i][k]})
		}
		tasks = append(tasks, mustTask(b, cfg))
	}
	return tasks, sums
}

// BenchmarkShuffle sends records from two sources over a hash edge to two
// keyed operators; b.N is the records of all.
func BenchmarkShuffle(b *testing.B) {
	l := &quiet{live{ctx: b.Context()}}
	readers := [2]*endless{{n: int64(b.N) / 2, ends: true}, {n: int64(b.N) / 2, ends: true, seed: 7}}
	tasks, sums := shuffle(b, l, readers)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var run sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	ended := make(chan struct{}, 4)
	for _, t := range tasks {
		t.cfg.Lead = endings{l, ended}
		run.Go(func() { t.Run(ctx) })
	}
	for range 4 {
		<-ended
	}
	b.StopTimer()
	cancel()
	run.Wait()
	if sums[0].n+sums[1].n != int64(b.N)/2*2 {
		b.Fatalf("%d records of %d", sums[0].n+sums[1].n, b.N)
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	l := &quiet{live{ctx: t.Context()}}
	chained, one := &endless{}, [2]*endless{{}, {seed: 7}}
	chain, _ := chainTask(t, chained, l)
	tasks, sums := shuffle(t, l, one)
	tasks = append(tasks, chain)
	for _, task := range tasks {
		task.cfg.Now = func() int64 { return 1 } // else a slow machine flushes more batches
		for task.phase != running {
			task.Step()
			l.work.Wait()
		}
	}
	round := func() {
		for _, r := range []*endless{chained, one[0], one[1]} {
			r.n += 64 * 1024
		}
		for worked := true; worked; {
			worked = false
			for _, task := range tasks {
				worked = task.Step().Worked || worked
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(10, round); n != 0 {
		t.Errorf("%v allocations for 3*64 batches", n)
	}
	if n := sums[0].n + sums[1].n; n != 12*2*64*1024 {
		t.Errorf("%d records arrived", n)
	}
}
