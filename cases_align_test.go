package staunch_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
)

// kilobyte is a record of 1 KiB.
type kilobyte struct {
	Key int
	Pad [1016]byte
}

// skewed is a count of two sources: a is fast, and b can be held.
type skewed struct {
	a, b  *casekit.Source[kilobyte]
	out   *casekit.TxLog[keyCount]
	store *casekit.Store
	*caseRun
}

// Keys below 100 are what a and b had before barrier 1, keys from 100 on came
// behind it.
const before = 500

func startSkewed(t *testing.T, limit int64) *skewed {
	at := func(base int) func(int, int64) kilobyte {
		return func(_ int, off int64) kilobyte {
			if off < before {
				return kilobyte{Key: base + int(off%40)}
			}
			return kilobyte{Key: 100 + base + int(off%97)}
		}
	}
	s := &skewed{
		a: casekit.NewSource(1, at(0)), b: casekit.NewSource(1, at(50)),
		out: casekit.NewTxLog[keyCount](), store: casekit.NewStore(),
	}
	j := staunch.NewJob("a01")
	both := staunch.Union(staunch.From(j, "a", s.a), staunch.From(j, "b", s.b))
	staunch.To(staunch.Count(staunch.KeyBy(both, func(k kilobyte) int { return k.Key }), "count"), "out", s.out)
	s.caseRun = start(t, s.store, j, onDemand(), func(_ *cluster.Job, o *cluster.Options) {
		o.Checkpoint.AlignmentLimit = limit
	})
	s.a.Grow(0, before)
	s.b.Grow(0, before)
	wait(time.Second)
	// b is held in the midst of a Poll: it cannot hear of a trigger.
	s.b.Gate.Close()
	s.b.Grow(0, 1)
	synctest.Wait()
	return s
}

func (s *skewed) finish(t *testing.T) {
	s.a.End()
	s.b.End()
	if _, err := s.end(time.Minute); err != nil {
		t.Fatal(err)
	}
	var keys []int
	for _, k := range append(s.a.All(), s.b.All()...) {
		keys = append(keys, k.Key)
	}
	wantCounts(t, s.out.Visible(), keys)
}

// flood is how much the fast input sends behind its barrier.
func flood() int64 {
	if *long {
		return 200_000
	}
	return 24_000
}

// While one input is held, a fast one that has delivered its barrier is held
// back by flow control: its sender stops, memory stays bounded by the channel,
// and nothing of what it sent gets into the checkpoint.
//
// Red: Barriers.Barrier did not block the channel (all of it was taken and
// stood in the state of checkpoint 1).
func TestCase_A01(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSkewed(t, 0)
		heap := liveHeap()
		answer := s.ask()
		s.a.Grow(0, flood())
		wait(time.Minute)

		// A channel has 8 batches of 1024; the batch being filled and the slice in
		// hand come on top.
		const channel = 8 * 1024
		if sent := s.a.Polled(0) - before; sent < channel || sent > channel+3*1024 {
			t.Errorf("a sent %d records behind its barrier, want about the %d that its channel holds", sent, channel)
		}
		if extra := liveHeap() - heap; extra > 8<<20+(channel+3*1024)<<10 {
			t.Errorf("%d MiB more heap while aligning", extra>>20)
		}
		if n := len(s.Completed()) + len(s.Failed()); n != 0 {
			t.Fatalf("the checkpoint ended though b has not delivered its barrier")
		}
		s.b.Gate.Open()
		if err := <-answer; err != nil {
			t.Fatal(err)
		}
		wait(time.Minute)
		for _, sub := range s.Completed()[0].Subtasks {
			for _, st := range sub.States {
				if st.Operator == "count" && st.Entries > 80+1 {
					t.Errorf("%d keys in checkpoint 1: those behind a's barrier are in it", st.Entries)
				}
			}
			for _, sp := range sub.Splits {
				if sp.Operator == "a" && sp.N != before {
					t.Errorf("a stands at %d in checkpoint 1, want %d", sp.N, before)
				}
			}
		}
		s.finish(t)
	})
}

// With a limit the checkpoint that holds back too much is given up at once, and
// the fast input goes on although the other is still held.
//
// Red: checkAlignmentLimit did nothing (checkpoint 1 expired, waiting for b, and
// a waited with it).
func TestCase_A01_AlignmentLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSkewed(t, 4000)
		answer := s.ask()
		s.a.Grow(0, flood())
		wait(time.Second)
		if err := fmt.Sprint(<-answer); !strings.Contains(err, "alignment limit") {
			t.Errorf("checkpoint 1: %v", err)
		}
		f := s.Failed()
		if len(f) != 1 || f[0].Failure.Reason != checkpoint.AlignmentLimit || f[0].Failure.At-f[0].Triggered > int64(time.Second) {
			t.Fatalf("failed: %+v", f)
		}
		if sent := s.a.Polled(0); sent != before+flood() {
			t.Errorf("a sent %d of %d: it is still held back", sent, before+flood())
		}
		s.b.Gate.Open()
		if id := s.checkpoint(); id != 2 {
			t.Errorf("checkpoint %d, want 2", id)
		}
		s.finish(t)
	})
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A source that has ended does not keep the others from checkpoints; it is
// recorded as finished and does not run again after a restore.
//
// Red: Coordinator.due did not trigger once some source had ended (no checkpoint
// any more); openSources handed splits that were read to their end out from 0
// (their records were counted again).
func TestCase_A04(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		bounded := casekit.NewSource(1, func(int, int64) int { return 7 })
		bounded.Finite = true
		endless := casekit.NewSource(1, func(_ int, off int64) int { return 100 + int(off%5) })
		store, out := casekit.NewStore(), casekit.NewTxLog[keyCount]()
		build := func() *staunch.Job {
			j := staunch.NewJob("a04")
			both := staunch.Union(staunch.From(j, "bounded", bounded), staunch.From(j, "endless", endless))
			staunch.To(staunch.Count(staunch.KeyBy(both, func(v int) int { return v }), "count"), "out", out)
			return j
		}
		const interval = time.Second
		o := staunch.Options{Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: interval}}
		r := start(t, store, build(), o, nil)
		endless.Grow(0, 100)
		bounded.Grow(0, n)
		wait(interval / 2)
		bounded.End()
		wait(interval / 4)
		done := len(r.Completed())
		wait(3*interval + interval/2)
		if got := len(r.Completed()) - done; got < 3 || len(r.Failed()) > 0 {
			t.Fatalf("%d checkpoints completed in 3 intervals after the end of one source, %d failed", got, len(r.Failed()))
		}
		wait(30 * interval)
		for _, about := range []string{"bounded", "ended", "finished"} {
			if lines := r.lines.With(about); len(lines) > 4 {
				t.Errorf("%d lines about the source that has ended, one each checkpoint: %q", len(lines), lines[0])
			}
		}
		r.stop()
		view, err := ckptlog.Read(t.Context(), store.Open())
		if err != nil {
			t.Fatal(err)
		}
		latest, _ := view.Latest()
		m, err := cluster.ReadManifest(t.Context(), store.Open(), latest)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range m.Operators {
			if finished := len(op.Finished) == op.Parallelism; finished != (op.Name == "bounded") {
				t.Errorf("operator %q is finished in checkpoint %d: %v", op.Name, latest.ID, finished)
			}
		}

		polled := bounded.Polled(0)
		r = start(t, store, build(), o, nil)
		endless.Grow(0, 100)
		wait(5 * interval)
		if again := bounded.Polled(0) - polled; again != 0 {
			t.Errorf("the ended source emitted %d records after the restore", again)
		}
		if got := len(r.Completed()); got < 3 {
			t.Errorf("%d checkpoints completed after the restore", got)
		}
		endless.End()
		if _, err := r.end(time.Minute); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, out.Visible(), append(bounded.All(), endless.All()...))
	})
}

// gated is a processor that passes on its input, and can be held at its Open or
// at a record in one subtask.
type gated struct {
	open, record *casekit.Gate
	subtask      int // the one that is held; -1: all
	seen         func(subtask, v int)
	at           int
}

func (g *gated) Open(ctx context.Context, i connector.Instance) error {
	g.at = i.Subtask
	if g.open != nil && g.held() {
		return g.open.PassContext(ctx)
	}
	return nil
}

func (g *gated) held() bool { return g.subtask < 0 || g.subtask == g.at }

func (g *gated) Process(c *staunch.Ctx[int], _ int, v int) error {
	if g.record != nil && g.held() {
		g.record.Pass()
	}
	if g.seen != nil {
		g.seen(g.at, v)
	}
	c.Emit(v)
	return nil
}

func itself(v int) int { return v }

// A checkpoint that comes due while a subtask is still opening is declined by
// name and at once; nobody is blocked for it.
//
// Red: Coordinator.trigger did not look at who is ready (the checkpoint waited,
// and nobody was told).
func TestCase_A06(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate casekit.Gate
		gate.Close()
		var seen casekit.Tally[int] // subtasks, one a record
		a, b := casekit.NewSource(1, offsets), casekit.NewSource(1, offsets)
		j := staunch.NewJob("a06")
		both := staunch.Union(staunch.From(j, "a", a), staunch.From(j, "b", b))
		join := staunch.Process(staunch.KeyBy(both, itself), "join", func(*staunch.Setup) *gated {
			return &gated{open: &gate, subtask: 1, seen: func(s, _ int) { seen.Add(s) }}
		})
		staunch.To(join, "out", casekit.NewTxLog[int]())
		r := start(t, casekit.NewStore(), j, staunch.Options{
			Parallelism: 2, Checkpoint: staunch.CheckpointOptions{Interval: 100 * time.Millisecond, Timeout: 10 * time.Minute},
		}, nil)
		wait(600 * time.Millisecond)
		failed := r.Failed()
		if len(failed) == 0 {
			t.Fatal("nobody was told that a subtask is not ready")
		}
		for _, f := range failed {
			if !strings.Contains(f.Failure.String(), "not ready") || !strings.Contains(f.Failure.String(), "join/1") {
				t.Errorf("failed with %q", f.Failure)
			}
			if f.Failure.At-f.Triggered > int64(500*time.Millisecond) {
				t.Errorf("declined after %v", time.Duration(f.Failure.At-f.Triggered))
			}
		}
		// Both inputs of the subtask that is open are read all the while.
		for i, s := range []*casekit.Source[int]{a, b} {
			had := seen.Count(0)
			s.Grow(0, 100)
			wait(500 * time.Millisecond)
			if seen.Count(0) == had {
				t.Errorf("input %d of the join is not read", i)
			}
		}
		if len(r.Completed()) > 0 {
			t.Error("a checkpoint completed though a subtask is not open")
		}
		gate.Open()
		wait(500 * time.Millisecond)
		if len(r.Completed()) == 0 || seen.Count(1) == 0 {
			t.Errorf("%d checkpoints completed and %d records came after the gate opened", len(r.Completed()), seen.Count(1))
		}
		r.stop()
	})
}

// Wherever a checkpoint fails, whoever is blocked for it is released at once.
// Of two upstreams, one subtask delivers no barrier for 3 at all, so that what
// has delivered one stays blocked until it is told.
//
// Red: Barriers.unblock did nothing for an id that was given up, and
// Coordinator.abort sent no Abort (each time records behind barrier 3 were never
// processed and checkpoint 4 never completed).
func TestCase_A07(t *testing.T) {
	boom := errors.New("the disk of the snapshot is on fire")
	for _, tt := range []struct {
		name   string
		tap    func(fails func(checkpoint.ID) bool) casekit.Tap
		reason checkpoint.Reason
	}{
		{"sync", func(fails func(checkpoint.ID) bool) casekit.Tap {
			return casekit.Tap{Sync: func(i connector.Instance, b checkpoint.Barrier) error {
				if fails(b.ID) && i.Subtask == 0 {
					return boom
				}
				return nil
			}}
		}, checkpoint.SyncFailed},
		{"async", func(fails func(checkpoint.ID) bool) casekit.Tap {
			return casekit.Tap{Async: func(_ context.Context, i connector.Instance, id checkpoint.ID) error {
				if fails(id) && i.Subtask == 0 {
					return boom
				}
				return nil
			}}
		}, checkpoint.AsyncFailed},
		{"coordinator", func(func(checkpoint.ID) bool) casekit.Tap { return casekit.Tap{} }, checkpoint.Expired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var gate casekit.Gate
				var down casekit.Tally[int]
				a, b := casekit.NewSource(1, offsets), casekit.NewSource(1, func(_ int, off int64) int { return 1000 + int(off) })
				j := staunch.NewJob("a07")
				up1 := staunch.Process(staunch.KeyBy(staunch.From(j, "a", a), itself), "up1", func(*staunch.Setup) *gated {
					return &gated{record: &gate, subtask: 1}
				}, staunch.Parallelism(2))
				up2 := staunch.Process(staunch.KeyBy(staunch.From(j, "b", b), itself), "up2", func(*staunch.Setup) *gated { return &gated{} })
				staunch.To(staunch.Process(staunch.KeyBy(staunch.Union(up1, up2), itself), "down", func(*staunch.Setup) *gated {
					return &gated{seen: func(_, v int) { down.Add(v) }}
				}), "out", casekit.NewTxLog[int]())
				o := onDemand()
				o.Checkpoint.FailAfter, o.Checkpoint.Timeout = 2, 5*time.Second
				r := start(t, casekit.NewStore(), j, o, func(job *cluster.Job, _ *cluster.Options) {
					tt.tap(func(id checkpoint.ID) bool { return id == 3 }).Put(job, "up1")
				})
				r.checkpoint()
				r.checkpoint()
				gate.Close()
				a.Grow(0, 20) // some are for up1/1, which is held at the first of them
				wait(time.Second)
				if gate.Waiting() != 1 {
					t.Fatal("up1/1 is not held")
				}
				answer := r.ask()
				// What b sends now is behind its barrier 3.
				b.Grow(0, 100)
				if tt.reason == checkpoint.Expired {
					wait(o.Checkpoint.Timeout - 100*time.Millisecond)
					if down.Has(1000) {
						t.Error("records behind barrier 3 were processed while it is aligned")
					}
					wait(100 * time.Millisecond)
				}
				wait(499 * time.Millisecond)
				if err := <-answer; err == nil {
					t.Error("checkpoint 3 completed")
				}
				if f := r.Failed(); len(f) != 1 || f[0].ID != 3 || f[0].Failure.Reason != tt.reason {
					t.Errorf("failed: %+v", f)
				}
				if !down.Has(1000) || !down.Has(1099) {
					t.Error("what up2 sent behind barrier 3 is still held back")
				}
				gate.Open()
				if id := r.checkpoint(); id != 4 {
					t.Errorf("checkpoint %d completed, want 4", id)
				}
				if down.Len() != 120 || len(casekit.All[cluster.Restarting](r.Recorder)) > 0 {
					t.Errorf("%d records came down, want 120", down.Len())
				}
				r.stop()
			})
		})
	}
}
