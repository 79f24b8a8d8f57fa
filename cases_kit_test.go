package staunch_test

import (
	"context"
	"flag"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
)

var long = flag.Bool("long", false, "run the cases in their long form")

// caseRun is a job that runs in the bubble of a test: everything waits on channels
// and timers, and time passes only by wait.
type caseRun struct {
	*casekit.Recorder
	t     *testing.T
	x     *cluster.Execution
	lines *casekit.Lines
	kill  context.CancelFunc
}

// start starts a job over a store. o needs no Storage; change may be nil.
func start(t *testing.T, store *casekit.Store, j *staunch.Job, o staunch.Options, change func(*cluster.Job, *cluster.Options)) *caseRun {
	t.Helper()
	r := &caseRun{Recorder: &casekit.Recorder{}, t: t, lines: casekit.NewLines(slog.LevelInfo)}
	o.Storage, o.Log = "mem:", slog.New(r.lines)
	ctx, cancel := context.WithCancel(t.Context())
	r.kill = cancel
	t.Cleanup(cancel)
	x, err := staunch.StartWith(ctx, j, o, func(j *cluster.Job, opt *cluster.Options) {
		opt.Store, opt.OnEvent = store.Open(), r.On
		if change != nil {
			change(j, opt)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	r.x = x
	synctest.Wait()
	return r
}

// wait lets time pass.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// ask asks for a checkpoint, and returns without waiting for it.
func (r *caseRun) ask() (answer chan error) {
	answer = make(chan error, 1)
	go func() {
		_, err := r.x.Checkpoint(r.t.Context())
		answer <- err
	}()
	synctest.Wait()
	return answer
}

// checkpoint takes a checkpoint.
func (r *caseRun) checkpoint() checkpoint.ID {
	r.t.Helper()
	id, err := r.x.Checkpoint(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
	return id
}

// stop ends the run as the end of its context does, and waits for it.
func (r *caseRun) stop() (cluster.Result, error) {
	r.kill()
	res, err := r.x.Wait()
	synctest.Wait()
	return res, err
}

// end waits for the end of the run, for as long as it may take.
func (r *caseRun) end(within time.Duration) (cluster.Result, error) {
	r.t.Helper()
	for range 100 {
		if r.ended() {
			break
		}
		wait(within / 100)
	}
	if !r.ended() {
		r.t.Fatalf("the run has not ended within %v", within)
	}
	return r.x.Wait()
}

// ended says whether the run has ended.
func (r *caseRun) ended() bool {
	select {
	case <-r.x.Done():
		return true
	default:
		return false
	}
}

// onDemand are options that take checkpoints only when asked.
func onDemand() staunch.Options {
	return staunch.Options{Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: -1}, Restart: staunch.NoRestart()}
}

// offsets is a record function whose records are the offsets.
func offsets(_ int, off int64) int { return int(off) }

type keyCount = staunch.KV[int, int64]

// wantCounts checks that out holds, for each key of the input, the counts from
// 1 to how often it is there, each once: nothing lost, nothing counted twice.
func wantCounts(t *testing.T, out []keyCount, keys []int) {
	t.Helper()
	want := map[int]int64{}
	for _, k := range keys {
		want[k]++
	}
	seen := map[keyCount]bool{}
	for _, kv := range out {
		if seen[kv] {
			t.Fatalf("%v is there twice", kv)
		}
		if kv.Value < 1 || kv.Value > want[kv.Key] {
			t.Fatalf("%v is there, but key %d is %d times in the input", kv, kv.Key, want[kv.Key])
		}
		seen[kv] = true
	}
	if len(seen) != len(keys) {
		t.Fatalf("%d keyCount, want %d", len(seen), len(keys))
	}
}
