package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/inspect"
	"github.com/staunchdev/staunch/storage/dir"
)

// syncLimit is the longest that the sync phase of 10 M keys may take.
const syncLimit = 200 * time.Microsecond

// measureSync reads the sync phases from the statistics of checkpoints that
// were taken while all keys were updated at full rate.
func measureSync(ctx context.Context, c config, r *report) error {
	for _, keys := range []int{10_000, 1_000_000, 10_000_000} {
		in := numbers(keys)
		for _, subtasks := range []int{1, 16} {
			syncs, err := syncPhases(ctx, c, in, subtasks)
			if err != nil {
				return err
			}
			slices.Sort(syncs)
			p50 := median(syncs)
			name := fmt.Sprintf("sync phase, %d keys, parallelism %d", keys, subtasks)
			value := fmt.Sprintf("p50 %v, p90 %v, max %v (n=%d)", p50, syncs[len(syncs)*9/10], syncs[len(syncs)-1], len(syncs))
			if keys < 10_000_000 {
				r.report(name, value)
				continue
			}
			r.bar(name+fmt.Sprintf(": p50 <= %v", syncLimit), value, p50 <= syncLimit)
		}
	}
	return nil
}

func syncPhases(ctx context.Context, c config, in input[uint64], subtasks int) ([]time.Duration, error) {
	k, err := start(ctx, in, setup{interval: -1, checkpoints: c.dir, counters: subtasks})
	if err != nil {
		return nil, err
	}
	defer k.stop()
	store, err := dir.Open(filepath.Join(k.dir, "checkpoints"))
	if err != nil {
		return nil, err
	}
	defer store.Close()
	var syncs []time.Duration
	for range 2*c.rounds + 1 {
		id, err := k.x.Checkpoint(ctx)
		if err != nil {
			return nil, err
		}
		d, err := inspect.Show(ctx, store, checkpoint.ID(id), false)
		if err != nil {
			return nil, err
		}
		for _, s := range d.Subtasks {
			// The only subtask, or those of the count.
			if subtasks == 1 || strings.HasPrefix(s.Name, "count") {
				syncs = append(syncs, time.Duration(s.Sync))
			}
		}
	}
	return syncs, k.close()
}
