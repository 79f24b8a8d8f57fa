package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/staunchdev/staunch"
)

// variant is a way to run the count that is compared with running it without
// checkpoints.
type variant struct {
	name string
	bar  float64 // 0: reported
	setup
}

// against measures variants in turn with the count that takes no checkpoints.
func against(ctx context.Context, c config, r *report, in input[uint64], window time.Duration, vs []variant) error {
	none := setup{interval: -1, checkpoints: c.dir}
	none.pinned = c.pinned
	ratio, taken, thread := make([][]float64, len(vs)), make([][]float64, len(vs)), make([][]float64, len(vs))
	taking, size := make([][]time.Duration, len(vs)), make([]int64, len(vs))
	for round := range c.rounds {
		rates := make([]rate, len(vs)+1) // the last one is none
		for i := range rates {
			i = (i + round) % len(rates)
			s := none
			if i < len(vs) {
				s = vs[i].setup
				s.checkpoints, s.pinned = c.dir, c.pinned
			}
			var err error
			if rates[i], err = measure(ctx, in, s, window); err != nil {
				return fmt.Errorf("%+v: %w", s, err)
			}
		}
		for i, v := range vs {
			ratio[i] = append(ratio[i], rates[i].perSecond/rates[len(vs)].perSecond)
			taken[i] = append(taken[i], rates[i].checkpoints*v.interval.Seconds())
			taking[i], size[i] = append(taking[i], rates[i].taking), rates[i].bytes
			thread[i] = append(thread[i], rates[len(vs)].thread/rates[i].thread)
		}
	}
	for i, v := range vs {
		value := fmt.Sprintf("%s; %.2f of the checkpoints due, %v for %.0f MB", spread(ratio[i]),
			slices.Min(taken[i]), round(median(taking[i])), float64(size[i])/1e6)
		if c.pinned {
			value += "; by the time of the subtask's thread " + spread(thread[i])
		}
		if v.bar == 0 {
			r.report(v.name, value)
			continue
		}
		// What was not durable in time was not paid for.
		counts := slices.Min(taken[i]) >= 0.9
		if !counts {
			value += " (a run counts from 0.9)"
		}
		r.bar(fmt.Sprintf("%s >= %.2f", v.name, v.bar), value, counts && median(ratio[i]) >= v.bar)
	}
	return nil
}

func measureCheckpoints(ctx context.Context, c config, r *report) error {
	return against(ctx, c, r, numbers(1_000_000), max(c.window, 4*time.Second), []variant{
		{"1 M keys, durable checkpoint every 1 s / none", 0.95, setup{interval: time.Second}},
		{"1 M keys, durable checkpoint every 100 ms / none", 0.85, setup{interval: 100 * time.Millisecond}},
		{"1 M keys, every 1 s, at-least-once / none", 0, setup{interval: time.Second, mode: staunch.AtLeastOnce}},
		{"1 M keys, every 1 s, at-most-once / none", 0.95, setup{interval: time.Second, mode: staunch.AtMostOnce}},
	})
}

func measureLarge(ctx context.Context, c config, r *report) error {
	return against(ctx, c, r, numbers(10_000_000), 20*time.Second, []variant{
		{"10 M keys, durable checkpoint every 10 s / none", 0.93, setup{interval: 10 * time.Second}},
	})
}
