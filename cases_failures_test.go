package staunch_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage/memstore"
)

// counting is the smallest job with keyed state.
func counting(name string, src connector.Source[int], out connector.Sink[keyCount]) *staunch.Job {
	j := staunch.NewJob(name)
	staunch.To(staunch.Count(staunch.KeyBy(staunch.From(j, "in", src), itself), "gate", staunch.NoChain()), "out", out)
	return j
}

// A checkpoint that expires is a failure like any other.
//
// Red: Reason.Counts did not count Expired (the job stayed running).
func TestCase_B01(t *testing.T) {
	forever := casekit.Tap{Async: func(ctx context.Context, _ connector.Instance, _ checkpoint.ID) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	for _, tt := range []struct {
		name      string
		failAfter int
	}{{"tolerated 2", 3}, {"unlimited", -1}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := casekit.NewSource(1, offsets)
				o := staunch.Options{
					Parallelism: 1, Restart: staunch.FixedDelay(1, time.Hour),
					Checkpoint: staunch.CheckpointOptions{Interval: 100 * time.Millisecond, Timeout: 200 * time.Millisecond, FailAfter: tt.failAfter},
				}
				r := start(t, casekit.NewStore(), counting("b01", src, casekit.NewTxLog[keyCount]()), o, func(job *cluster.Job, _ *cluster.Options) {
					forever.Put(job, "gate")
				})
				for range 200 {
					if wait(10 * time.Millisecond); len(r.Failed()) == 3 {
						break
					}
				}
				for _, f := range r.Failed() {
					if f.Failure.Reason != checkpoint.Expired {
						t.Errorf("checkpoint %d failed with %q", f.ID, f.Failure)
					}
				}
				restarts := casekit.All[cluster.Restarting](r.Recorder)
				if tt.failAfter < 0 {
					if len(restarts) > 0 || r.ended() || r.x.Metrics()["checkpoints.failed"] != 3 {
						t.Errorf("restarts %+v, failed %d", restarts, r.x.Metrics()["checkpoints.failed"])
					}
					src.Grow(0, 5) // it still runs
					wait(50 * time.Millisecond)
					if src.Polled(0) != 5 {
						t.Error("the job does not read any more")
					}
				} else if len(restarts) != 1 || !strings.Contains(restarts[0].Cause.Error(), "3 consecutive checkpoint failures, last: expired, waiting for [gate/0]") {
					t.Errorf("restarts %+v", restarts)
				}
				r.stop()
			})
		})
	}
}

// A store that cannot be written is refused before anything runs; one that
// fails later, at the manifest, fails the job by its policy.
//
// Red: open did not probe the store (it went as far as the log); Reason.Counts did
// not count PublishFailed (the job went on); collectLast did nothing (6 files
// were left).
func TestCase_B02(t *testing.T) {
	t.Run("refused at the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := casekit.NewStore()
			store.Rule(func(op memstore.Op) memstore.Outcome {
				if op.Verb == memstore.Create {
					return casekit.Forbidden()
				}
				return memstore.Outcome{}
			})
			began := time.Now()
			r := start(t, store, counting("b02", casekit.NewSource(1, offsets), casekit.NewTxLog[keyCount]()), staunch.Options{}, nil)
			_, err := r.end(time.Minute)
			if err == nil || !strings.Contains(err.Error(), "403") || !strings.Contains(err.Error(), "create probe/") {
				t.Errorf("the error names not what was refused and where: %v", err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("refused after %v", took)
			}
			if len(casekit.All[cluster.Started](r.Recorder)) > 0 {
				t.Error("the job was running")
			}
		})
	})
	t.Run("manifest fails", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := casekit.NewStore()
			src := casekit.NewSource(1, offsets)
			o := staunch.Options{
				Parallelism: 2, Restart: staunch.NoRestart(),
				Checkpoint: staunch.CheckpointOptions{Interval: time.Second, FailAfter: 3},
			}
			r := start(t, store, counting("b02", src, casekit.NewTxLog[keyCount]()), o, nil)
			src.Grow(0, 20_000) // more than is kept inline
			store.Rule(func(op memstore.Op) memstore.Outcome {
				if op.Verb == memstore.Create && strings.HasPrefix(op.Name, checkpoint.ManifestPrefix) {
					return casekit.Forbidden()
				}
				return memstore.Outcome{}
			})
			_, err := r.end(time.Minute)
			synctest.Wait()
			if err == nil || !strings.Contains(err.Error(), "3 consecutive checkpoint failures, last: publish failed") || !strings.Contains(err.Error(), "403") {
				t.Errorf("ended with %v", err)
			}
			if n := len(r.Failed()); n != 3 {
				t.Errorf("failed at checkpoint failure %d, want 3", n)
			}
			if store.Count(memstore.Commit, checkpoint.ObjectPrefix)+store.Count(memstore.Create, checkpoint.ObjectPrefix) < 3 {
				t.Error("the failed checkpoints had no data file to leave behind")
			}
			if left := append(store.Names(checkpoint.ObjectPrefix), store.Names(checkpoint.ManifestPrefix)...); len(left) > 0 {
				t.Errorf("%d files of failed checkpoints are left: %v", len(left), left[0])
			}
		})
	})
}

// A user's function that does not return when it is told to stop: within the
// deadline the job says so, names the operator and shows its stack, and nothing
// goes on as if the job were running.
//
// Red: watchStuck did nothing (the run never ended); it logged no stacks.
func TestCase_B05(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const deadline = 2 * time.Second
		deaf := make(chan struct{})
		src := casekit.NewSource(1, offsets)
		j := staunch.NewJob("b05")
		staunch.To(staunch.Process(staunch.KeyBy(staunch.From(j, "in", src), itself), "op", func(*staunch.Setup) staunch.ProcessFunc[int, int, int] {
			return func(*staunch.Ctx[int], int, int) error { <-deaf; return nil }
		}, staunch.NoChain()), "out", casekit.NewTxLog[int]())
		o := staunch.Options{
			Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: time.Second, Timeout: time.Second, FailAfter: 1},
			Restart: staunch.FixedDelay(0, time.Millisecond),
		}
		r := start(t, casekit.NewStore(), j, o, func(_ *cluster.Job, o *cluster.Options) { o.CancelDeadline = deadline })
		src.Grow(0, 1)
		wait(time.Second) // triggered
		wait(time.Second) // expired
		if len(r.Failed()) != 1 {
			t.Fatalf("failed: %+v", r.Failed())
		}
		if r.ended() {
			t.Fatal("the run is over before the deadline of the subtask")
		}
		wait(deadline)
		if !r.ended() {
			t.Fatal("nobody says that a subtask is stuck")
		}
		_, err := r.end(time.Minute)
		for _, want := range []string{"op/0", `processing operator "op"`, "expired"} {
			if !errors.Is(err, cluster.ErrStuck) || !strings.Contains(err.Error(), want) {
				t.Errorf("the error does not say %q: %v", want, err)
			}
		}
		if lines := r.lines.With("TestCase_B05"); len(lines) != 1 || !strings.Contains(lines[0], "stuck") {
			t.Errorf("the log does not show where the subtask is: %q", r.lines.With("stuck"))
		}
		if n := len(casekit.All[cluster.Restarting](r.Recorder)); n > 0 || len(casekit.All[cluster.Started](r.Recorder)) != 1 {
			t.Errorf("%d restarts beside a subtask that does not stop", n)
		}
		close(deaf)
	})
}
