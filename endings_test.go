package staunch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

// withCheckpoints has a job in store that has taken three checkpoints.
func withCheckpoints(t *testing.T, name string) (*casekit.Store, func() *staunch.Job) {
	t.Helper()
	src, store, out := casekit.NewSource(1, offsets), casekit.NewStore(), casekit.NewTxLog[keyCount]()
	build := func() *staunch.Job { return counting(name, src, out) }
	r := start(t, store, build(), onDemand(), nil)
	for range 3 {
		src.Grow(0, 2000)
		wait(time.Second)
		r.checkpoint()
	}
	if _, err := r.stop(); err != nil {
		t.Fatal(err)
	}
	return store, build
}

// State that is found damaged while subtasks restore it says what else there is
// to start from, as a damaged manifest does, and nothing is said to go on.
//
// Red: only prepare told the remedy; Running was told by launch.
func TestDamagedStateNamesTheRemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, build := withCheckpoints(t, "damaged")
		store.Rule(func(op memstore.Op) memstore.Outcome {
			if op.Verb == memstore.ReadAt && strings.HasPrefix(op.Name, checkpoint.ObjectPrefix) {
				return memstore.Outcome{Fate: memstore.Damage, Keep: 100}
			}
			return memstore.Outcome{}
		})
		r := start(t, store, build(), onDemand(), nil)
		_, err := r.end(time.Minute)
		if err == nil {
			t.Fatal("damaged state was restored")
		}
		for _, want := range []string{"subtask gate/0: ", "checkpoint 3: ", checkpoint.ObjectPrefix, "others that are kept: [1 2]", "-from ID", "-fresh"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not say %q", err, want)
			}
		}
		if n := len(casekit.All[cluster.Running](r.Recorder)); n > 0 || len(r.lines.With("attempt started")) > 0 {
			t.Errorf("it is said to run: %q", r.lines.With(""))
		}
		store.Rule(nil)
		r = start(t, store, build(), onDemand(), nil)
		if e := casekit.All[cluster.Running](r.Recorder); len(e) != 1 || e[0].Restored != 3 {
			t.Errorf("told %+v", e)
		}
		r.stop()
	})
}

// lateDamage is a store whose manifests take until gate is closed to be read,
// and are damaged. It does not look at its contexts.
type lateDamage struct {
	storage.Store
	gate chan struct{}
}

func (s lateDamage) ReadAt(ctx context.Context, name string, off, n int64) ([]byte, error) {
	b, err := s.Store.ReadAt(context.WithoutCancel(ctx), name, off, n)
	if strings.HasPrefix(name, checkpoint.ManifestPrefix) && err == nil {
		<-s.gate
		b[len(b)/2] ^= 1
	}
	return b, err
}

// Damage that a start finds when it is stopped already is an error, and not the
// orderly end of the job: the next start would meet it again.
//
// Red: begin ignored the error of an attempt that is ending.
func TestDamageFoundAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, build := withCheckpoints(t, "late")
		gate := make(chan struct{})
		r := start(t, store, build(), onDemand(), func(_ *cluster.Job, o *cluster.Options) {
			o.Store = lateDamage{o.Store, gate}
		})
		r.kill()
		synctest.Wait()
		close(gate)
		if res, err := r.x.Wait(); err == nil || !strings.Contains(err.Error(), "others that are kept: [1 2]") || res.Records != nil {
			t.Errorf("ended with %v, records %v", err, res.Records)
		}
		synctest.Wait()
	})
}

// cutShort is a store that lists and deletes until it is told to stop.
type cutShort struct{ storage.Store }

func (s cutShort) List(ctx context.Context, prefix string) ([]storage.Info, error) {
	if prefix != checkpoint.ObjectPrefix {
		return s.Store.List(ctx, prefix)
	}
	<-ctx.Done()
	return nil, fmt.Errorf("list %s: %w", prefix, ctx.Err())
}

func (s cutShort) Delete(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, checkpoint.ManifestPrefix) {
		return s.Store.Delete(ctx, name)
	}
	<-ctx.Done()
	return fmt.Errorf("delete %s: %w", name, ctx.Err())
}

// refusing is a sink that cannot be written to for good.
type refusing struct{ *casekit.TxLog[keyCount] }

var errNoTable = connector.Permanent(errors.New("no such table"))

func (refusing) Writer(context.Context, connector.Instance) (connector.Writer[keyCount], error) {
	return nil, errNoTable
}

// What we cut short ourselves when a job ends is not warned of.
//
// Red: the collections warned of whatever their error was.
func TestOurOwnEndIsNoWarning(t *testing.T) {
	short := func(_ *cluster.Job, o *cluster.Options) { o.Store = cutShort{o.Store} }
	t.Run("stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			src, store := casekit.NewSource(1, offsets), casekit.NewStore()
			r := start(t, store, counting("short", src, casekit.NewTxLog[keyCount]()), onDemand(), short)
			for range 5 { // the older ones are disposed of
				src.Grow(0, 10)
				wait(time.Second)
				r.checkpoint()
			}
			if _, err := r.stop(); err != nil {
				t.Error(err)
			}
			if lines := r.lines.With("level=WARN"); len(lines) > 0 {
				t.Errorf("warned of: %q", lines)
			}
		})
	})
	t.Run("permanent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sink := refusing{casekit.NewTxLog[keyCount]()}
			r := start(t, casekit.NewStore(), counting("short", casekit.NewSource(1, offsets), sink), staunch.Options{Parallelism: 1}, short)
			if _, err := r.end(time.Minute); !errors.Is(err, errNoTable) {
				t.Error(err)
			}
			if lines := r.lines.With("level=WARN"); len(lines) > 0 {
				t.Errorf("warned of: %q", lines)
			}
		})
	})
}

// A job that waits for what it needs to begin is not degraded; one that runs
// and never has a checkpoint is, and says that.
//
// Red: the age was counted from the takeover.
func TestHealthCountsFromWhenTheJobRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := make(chan struct{})
		src, out := casekit.NewSource(1, offsets), casekit.NewTxLog[keyCount]()
		never := casekit.Tap{Async: func(ctx context.Context, _ connector.Instance, _ checkpoint.ID) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		o := staunch.Options{Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: time.Second}}
		r := start(t, casekit.NewStore(), counting("slow", src, &slowSink{out, open}), o, func(j *cluster.Job, _ *cluster.Options) { never.Put(j, "gate") })
		wait(time.Minute)
		if lines := r.lines.With("degraded"); len(lines) > 0 {
			t.Errorf("before it runs: %q", lines)
		}
		close(open)
		wait(4 * time.Second)
		if lines := r.lines.With("degraded"); len(lines) > 0 {
			t.Errorf("too early: %q", lines)
		}
		wait(2 * time.Second)
		if lines := r.lines.With("degraded: no checkpoint since the start"); len(lines) != 1 {
			t.Errorf("after 6 s without a checkpoint: %q", r.lines.With("degraded"))
		}
		r.stop()
	})
}

// slowSink opens when open is closed.
type slowSink struct {
	*casekit.TxLog[keyCount]
	open chan struct{}
}

func (s *slowSink) Writer(ctx context.Context, i connector.Instance) (connector.Writer[keyCount], error) {
	<-s.open
	return s.TxLog.Writer(ctx, i)
}

// While a store is away, its failures are told once a minute, by one name.
//
// Red: every failure was logged; stateSnapshot.Write named the operator too.
func TestAStoreThatIsAwayIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, store, out := casekit.NewSource(1, offsets), casekit.NewStore(), casekit.NewTxLog[keyCount]()
		o := staunch.Options{Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: 500 * time.Millisecond}}
		r := start(t, store, counting("away", src, out), o, nil)
		src.Grow(0, 2000)
		wait(2 * time.Second)
		store.Rule(func(memstore.Op) memstore.Outcome { return memstore.Unreachable() })
		src.Grow(0, 2000)
		wait(150 * time.Second)
		failed := r.lines.With("checkpoint failed")
		if n := len(r.Failed()); n < 100 || len(failed) < 3 || len(failed) > 6 {
			t.Errorf("%d checkpoints failed, and %d lines say it: %q", n, len(failed), failed)
		}
		if !slices.ContainsFunc(failed, func(s string) bool { return strings.Contains(s, "more=1") }) {
			t.Errorf("no line says how many there were: %q", failed)
		}
		for _, line := range failed {
			if strings.Count(line, `operator \"gate\"`) > 1 || strings.Count(line, " memory") > 1 {
				t.Errorf("a name is there twice: %s", line)
			}
		}
		if all := r.lines.With("level=WARN"); len(all) > 15 {
			t.Errorf("%d warnings in 150 s: %s", len(all), strings.Join(all, "\n"))
		}
		r.stop()
	})
}

// A run that is stopped before it has read anything claims no totals.
func TestStoppedBeforeItStarted(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "checkpoints")
	build := func() *staunch.Job {
		j := staunch.NewJob("j")
		staunch.To(staunch.FromSlice(j, "in", numbers(10)), "out", newMemory[int]())
		j.Defaults(quiet(staunch.Options{Storage: storage}))
		return j
	}
	var first, second bytes.Buffer
	if status := staunch.Command(t.Context(), nil, &first, &first, build); status != 0 || !strings.Contains(first.String(), "in=10 out=10") {
		t.Fatalf("status %d: %s", status, first.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status := staunch.Command(ctx, nil, &second, &second, build)
	if got := second.String(); status != 0 || !strings.Contains(got, "stopped before it started") || strings.Contains(got, "in=0") {
		t.Errorf("status %d: %s", status, got)
	}
}
