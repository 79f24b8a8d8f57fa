package main

import (
	"context"
	"fmt"
	"time"

	"github.com/staunchdev/staunch"
)

// measureStall reports how long the sink gets nothing while a checkpoint is
// taken: with a barrier that is late, and with a snapshot that is written by
// the subtask itself.
func measureStall(ctx context.Context, c config, r *report) error {
	in := numbers(1_000_000)
	const late = time.Second
	var aligned, never, async, inline []time.Duration
	for range c.rounds {
		for _, m := range []struct {
			mode staunch.Guarantee
			out  *[]time.Duration
		}{{staunch.ExactlyOnce, &aligned}, {staunch.AtLeastOnce, &never}} {
			l := &latecomer{by: late, began: make(chan struct{})}
			d, err := stall(ctx, in, setup{interval: -1, checkpoints: c.dir, mode: m.mode, sources: 2, late: l})
			if err != nil {
				return err
			}
			*m.out = append(*m.out, d)
		}
		for _, m := range []struct {
			inline bool
			out    *[]time.Duration
		}{{false, &async}, {true, &inline}} {
			d, err := stall(ctx, in, setup{interval: -1, checkpoints: c.dir, inline: m.inline})
			if err != nil {
				return err
			}
			*m.out = append(*m.out, d)
		}
	}
	r.report("one channel's barrier 1 s late: longest stall, aligned against at-least-once",
		fmt.Sprintf("%v against %v", round(median(aligned)), round(median(never))))
	r.report("1 M keys: longest stall, synchronous against asynchronous snapshot",
		fmt.Sprintf("%v against %v", round(median(inline)), round(median(async))))
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// stall is the longest time without a Write while one checkpoint is taken.
func stall(ctx context.Context, in input[uint64], s setup) (time.Duration, error) {
	k, err := start(ctx, in, s)
	if err != nil {
		return 0, err
	}
	defer k.stop()
	if _, err := k.x.Checkpoint(ctx); err != nil { // the first one is of new pages
		return 0, err
	}
	if s.late != nil {
		s.late.asked.Store(true)
		<-s.late.began
	}
	k.sink.forget()
	if _, err := k.x.Checkpoint(ctx); err != nil {
		return 0, err
	}
	d := k.sink.stalled()
	return d, k.close()
}
