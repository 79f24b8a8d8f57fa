package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
)

// byHand is the loop that somebody would write who needs no engine: it counts
// in a map and gives the sink a batch of 1024 results at a time.
func byHand[K comparable](in input[K], d time.Duration) rate {
	counts := make(map[K]int64)
	for _, k := range in.each {
		counts[k]++
	}
	s := &sink[K]{}
	w := writer[K]{s}
	out := make([]staunch.KV[K, int64], 0, 1024)
	runtime.GC()
	m := newMeter(s.n.Load, nil)
	for at := 0; ; at = (at + 1024) % len(in.loop) {
		out = out[:0]
		for _, k := range in.loop[at : at+1024] {
			counts[k]++
			out = append(out, staunch.KV[K, int64]{Key: k, Value: counts[k]})
		}
		_ = w.Write(context.Background(), connector.Batch[staunch.KV[K, int64]]{Values: out}) // has no error
		if time.Since(m.at) > d {
			return m.read()
		}
	}
}

// compared are rounds of the loop and the engine in turn.
type compared struct {
	ratio, nanos []float64 // engine over loop, by the clock and by user time
	hand, engine []float64 // millions of records a second
}

func compare[K comparable](ctx context.Context, c config, in input[K], s setup) (compared, error) {
	var out compared
	for round := range c.rounds {
		var hand, engine rate
		var err error
		for turn := range 2 { // every other round the engine goes first
			if (round+turn)%2 == 0 {
				hand = byHand(in, c.window)
			} else if engine, err = measure(ctx, in, s, c.window); err != nil {
				return out, err
			}
		}
		out.ratio = append(out.ratio, engine.perSecond/hand.perSecond)
		out.nanos = append(out.nanos, hand.nanos/engine.nanos)
		out.hand = append(out.hand, hand.perSecond/1e6)
		out.engine = append(out.engine, engine.perSecond/1e6)
	}
	return out, nil
}

func (o compared) String() string {
	return fmt.Sprintf("%s; by user time %.2f; engine %.1f M/s, loop %.1f M/s", spread(o.ratio), median(o.nanos), median(o.engine), median(o.hand))
}

func measureCount(ctx context.Context, c config, r *report) error {
	if err := countOver(ctx, c, r, "uint64", numbers); err != nil {
		return err
	}
	return countOver(ctx, c, r, "12-byte string", texts)
}

func countOver[K comparable](ctx context.Context, c config, r *report, name string, keys func(int) input[K]) error {
	none := setup{interval: -1, checkpoints: c.dir}
	for _, b := range []struct {
		keys  int
		label string
		bar   float64
	}{{1_000_000, "1 M keys", 0.6}, {1000, "1 000 hot keys", 0.4}} {
		o, err := compare(ctx, c, keys(b.keys), none)
		if err != nil {
			return err
		}
		r.bar(fmt.Sprintf("count, %s, %s: engine / loop >= %.1f", b.label, name, b.bar), o.String(), median(o.ratio) >= b.bar)
	}
	two := none
	two.sources, two.counters = 2, 2
	o, err := compare(ctx, c, keys(1_000_000), two)
	if err != nil {
		return err
	}
	r.report(fmt.Sprintf("count, 1 M keys, %s, two subtasks with shuffle: engine / loop", name), o.String())
	return nil
}

// measureAllocs counts what the whole process allocates while the engine
// counts: the engine itself, its sink, the runtime.
func measureAllocs(ctx context.Context, c config, r *report) error {
	var worst float64
	one := func(o rate, err error) error {
		worst = max(worst, o.allocs)
		return err
	}
	for _, s := range []setup{
		{interval: -1, checkpoints: c.dir},
		{interval: -1, checkpoints: c.dir, sources: 2, counters: 2},
	} {
		if err := one(measure(ctx, numbers(1_000_000), s, c.window)); err != nil {
			return err
		}
		if err := one(measure(ctx, texts(1_000_000), s, c.window)); err != nil {
			return err
		}
	}
	// What is left are some for each batch that is handed to the sink's writer. One
	// for each record, or for each tenth, would be seen.
	r.bar("allocations a record of the whole process, keyed count: 0", fmt.Sprintf("%.5f, or %.0f for 1024 records", worst, 1024*worst), worst < 0.05)
	return nil
}
