package staunch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/state"
	"github.com/staunchdev/staunch/storage/memstore"
)

// fragile passes on its input, and fails for some of it.
func fragile(fail func() error) func(*staunch.Setup) staunch.ProcessFunc[int, int, int] {
	return func(*staunch.Setup) staunch.ProcessFunc[int, int, int] {
		return func(c *staunch.Ctx[int], _ int, v int) error {
			if err := fail(); err != nil {
				return err
			}
			c.Emit(v)
			return nil
		}
	}
}

// A job that fails again and again comes back ever more slowly, and each time
// reads no more than the one checkpoint that it restores.
//
// Red: restartState.delay did not grow (60 starts); restart forgot the failures
// without a completed checkpoint; launch collected garbage in each attempt (the
// whole store was listed by each restart).
func TestCase_I01(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const first, most, stable = 100 * time.Millisecond, 5 * time.Second, 10 * time.Second
		var sick casekit.Gate // closed: the outer system is well
		src, store, out := casekit.NewSource(1, offsets), casekit.NewStore(), casekit.NewTxLog[keyCount]()
		var well atomic.Bool
		j := staunch.NewJob("i01")
		p := staunch.Process(staunch.KeyBy(staunch.From(j, "in", src), itself), "op", fragile(func() error {
			sick.Pass()
			if well.Load() {
				return nil
			}
			<-time.After(100 * time.Millisecond)
			return errors.New("the outer system is overloaded")
		}))
		staunch.To(staunch.Count(staunch.KeyBy(p, itself), "count"), "out", out)
		o := staunch.Options{
			Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: -1},
			Restart: staunch.RestartPolicy{Delay: first, MaxDelay: most, Factor: 2, Reset: stable},
		}
		r := start(t, store, j, o, nil)
		restarts := func() []cluster.Restarting { return casekit.All[cluster.Restarting](r.Recorder) }
		well.Store(true)
		src.Grow(0, 3000)
		wait(time.Second)
		r.checkpoint()
		latest := latestFiles(t, store)

		well.Store(false)
		store.Forget()
		src.Grow(0, 1)
		wait(time.Minute)
		if n := len(casekit.All[cluster.Started](r.Recorder)) - 1; n > 20 || n < 10 {
			t.Errorf("%d starts in a minute", n)
		}
		for i, re := range restarts() {
			want := min(first<<i, most)
			if i > 8 {
				want = most
			}
			if re.Delay < want || re.Delay > want*11/10 {
				t.Errorf("restart %d after %v, want %v and up to 10%% more", i+1, re.Delay, want)
			}
		}
		n := len(restarts())
		if lists := store.Count(memstore.List, checkpoint.ObjectPrefix) + store.Count(memstore.List, checkpoint.ManifestPrefix); lists > 0 {
			t.Errorf("%d restarts listed the store %d times", n, lists)
		}
		var gets int
		for _, op := range store.Ops() {
			if op.Verb != memstore.ReadAt && op.Verb != memstore.Stat {
				continue
			}
			gets++
			if !slices.Contains(latest, op.Name) {
				t.Errorf("a restart reads %s, which is not of the checkpoint it restores", op.Name)
			}
		}
		if gets == 0 || gets > (n+1)*8*len(latest) {
			t.Errorf("%d restarts from %d files took %d gets", n, len(latest), gets)
		}

		// Well for long, but without a checkpoint: not forgotten.
		sick.Close()
		for range 100 {
			if wait(100 * time.Millisecond); sick.Waiting() > 0 {
				break
			}
		}
		wait(2 * stable)
		n = len(restarts())
		sick.Open()
		wait(time.Second)
		if re := restarts(); len(re) != n+1 || re[n].Delay < most {
			t.Errorf("a stable time without a checkpoint forgets failures: %+v", re[n:])
		}
		// Well for long, and with one.
		sick.Close()
		for range 100 {
			if wait(100 * time.Millisecond); sick.Waiting() > 0 {
				break
			}
		}
		well.Store(true)
		sick.Open()
		wait(2 * stable)
		r.checkpoint()
		well.Store(false)
		n = len(restarts())
		src.Grow(0, 1)
		wait(150 * time.Millisecond)
		if re := restarts(); len(re) != n+1 || re[n].Delay > first*11/10 {
			t.Errorf("a stable time with a checkpoint does not forget failures: %+v", re[n:])
		}
		r.stop()
	})
}

// Many subtasks that fail for one cause are one restart.
//
// Red: lead.Failed began a restart of its own for each failure.
func TestCase_I01_Together(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gate casekit.Gate
		gate.Close()
		src := casekit.NewSource(1, offsets)
		j := staunch.NewJob("i01")
		staunch.To(staunch.Process(staunch.KeyBy(staunch.From(j, "in", src), itself), "op", fragile(func() error {
			gate.Pass()
			return errors.New("the outer system is down")
		}), staunch.Parallelism(64)), "out", casekit.NewTxLog[int]())
		o := onDemand()
		o.Restart = staunch.Backoff(time.Hour, time.Hour)
		r := start(t, casekit.NewStore(), j, o, nil)
		src.Grow(0, 5000)
		wait(time.Second)
		if gate.Waiting() != 64 {
			t.Fatalf("%d subtasks are about to fail, want 64", gate.Waiting())
		}
		gate.Open()
		wait(time.Minute)
		if n := len(casekit.All[cluster.Restarting](r.Recorder)); n != 1 {
			t.Errorf("64 failures of one cause are %d restarts", n)
		}
		r.stop()
	})
}

// Whatever way a leader loses the job, or ends without having finished it,
// nothing of the recovery data goes, and the next one restores the latest.
//
// Red: finish deleted all log records and objects when the run ended.
func TestCase_I02(t *testing.T) {
	type leader struct {
		*caseRun
		handle *memstore.Store
	}
	for _, tt := range []struct {
		name string
		lose func(t *testing.T, s *casekit.Store, l leader, rival func())
	}{
		{"store gone for 2 s", func(t *testing.T, s *casekit.Store, l leader, _ func()) { outage(s, 2*time.Second); l.stop() }},
		{"store gone for 30 s", func(t *testing.T, s *casekit.Store, l leader, _ func()) { outage(s, 30*time.Second); l.stop() }},
		{"killed", func(t *testing.T, s *casekit.Store, l leader, _ func()) {
			l.handle.Kill()
			wait(10 * time.Second)
			l.stop()
		}},
		{"stopped", func(t *testing.T, s *casekit.Store, l leader, _ func()) { l.stop() }},
		{"taken over", func(t *testing.T, s *casekit.Store, l leader, rival func()) {
			rival()
			wait(10 * time.Second)
			if _, err := l.end(time.Minute); !errors.Is(err, ckptlog.ErrFenced) {
				t.Errorf("the old leader ended with %v", err)
			}
		}},
		{"failed for good", func(t *testing.T, s *casekit.Store, l leader, _ func()) {
			s.Rule(func(op memstore.Op) memstore.Outcome {
				if strings.HasPrefix(op.Name, checkpoint.ManifestPrefix) && op.Verb == memstore.Create {
					return casekit.Forbidden()
				}
				return memstore.Outcome{}
			})
			wait(10 * time.Second)
			if _, err := l.end(time.Minute); err == nil {
				t.Error("the job did not fail")
			}
			s.Rule(nil)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src, store, out := casekit.NewSource(1, offsets), casekit.NewStore(), casekit.NewTxLog[keyCount]()
				o := staunch.Options{
					Parallelism: 1, Restart: staunch.NoRestart(),
					Checkpoint: staunch.CheckpointOptions{Interval: time.Second, FailAfter: 1000},
				}
				if tt.name == "failed for good" {
					o.Checkpoint.FailAfter = 2
				}
				lead := func() (l leader) {
					l.caseRun = start(t, store, counting("i02", src, out), o, func(_ *cluster.Job, o *cluster.Options) {
						l.handle, o.Takeover = o.Store.(*memstore.Store), true
					})
					return l
				}
				l := lead()
				src.Grow(0, 3000)
				wait(4500 * time.Millisecond)
				had := viewOf(t, store)
				if len(had.Retained()) < 3 {
					t.Fatalf("retained: %v", had.Retained())
				}
				src.Grow(0, 500)
				var second leader
				tt.lose(t, store, l, func() { second = lead() })

				// What is retained now is whole, and it is not less than before.
				now := viewOf(t, store)
				latest, ok := now.Latest()
				if before, _ := had.Latest(); !ok || latest.ID < before.ID || len(now.Retained()) < 3 {
					t.Fatalf("retained %v before, %v after", had.Retained(), now.Retained())
				}
				for _, c := range now.Retained() {
					if gone := missing(t, store, c); len(gone) > 0 {
						t.Errorf("checkpoint %d has lost %v", c.ID, gone)
					}
				}
				if second.caseRun == nil {
					second = lead()
					wait(100 * time.Millisecond)
					if s := casekit.All[cluster.Started](second.Recorder); len(s) != 1 || s[0].Restored != latest.ID {
						t.Errorf("the next leader started %+v, want checkpoint %d", s, latest.ID)
					}
				}
				src.End()
				if _, err := second.end(time.Minute); err != nil {
					t.Fatal(err)
				}
				wantCounts(t, out.Visible(), src.All())
			})
		})
	}
}

func outage(s *casekit.Store, d time.Duration) {
	s.Rule(func(memstore.Op) memstore.Outcome { return memstore.Unreachable() })
	wait(d)
	s.Rule(nil)
	wait(5 * time.Second)
}

// change is a row change of a source that captures them.
type change struct {
	Row    int
	Value  int64
	Delete bool
}

func changes(_ int, off int64) change {
	return change{Row: int(off * 7 % 61), Value: off, Delete: off%5 == 3}
}

// apply is the oracle: the table after all changes.
func apply(cs []change) map[int]int64 {
	table := map[int]int64{}
	for _, c := range cs {
		if c.Delete {
			delete(table, c.Row)
		} else {
			table[c.Row] = c.Value
		}
	}
	return table
}

// mirror keeps the row of each key, and emits what changes it: a deletion only
// of a row that is there.
type mirror struct{ row state.Value[int64] }

func (m *mirror) Process(c *staunch.Ctx[change], _ int, in change) error {
	_, there := m.row.Lookup()
	switch {
	case !in.Delete:
		m.row.Set(in.Value)
	case there:
		m.row.Clear()
	default:
		return nil
	}
	c.Emit(in)
	return nil
}

// A new leader goes on from the latest checkpoint, of state and of source; if
// it is there and cannot be read, it does not start at all.
//
// Red: begin took no checkpoint to restore (position 0, the table was wrong);
// prepare went on without the checkpoint when it could not be read.
func TestCase_I03(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, store, out := casekit.NewSource(1, changes), casekit.NewStore(), casekit.NewTxLog[change]()
		build := func() *staunch.Job {
			j := staunch.NewJob("i03")
			rows := staunch.KeyBy(staunch.From(j, "cdc", src), func(c change) int { return c.Row })
			staunch.To(staunch.Process(rows, "mirror", func(s *staunch.Setup) *mirror {
				return &mirror{state.NewValue[int64](s, "row")}
			}), "out", out)
			return j
		}
		r := start(t, store, build(), onDemand(), nil)
		for range 7 {
			src.Grow(0, 50)
			wait(time.Second)
			r.checkpoint()
		}
		src.Grow(0, 33) // processed, and in no checkpoint
		wait(time.Second)
		r.stop()

		for _, tt := range []struct {
			name, prefix string
			outcome      memstore.Outcome
		}{
			{"manifest damaged", checkpoint.ManifestPrefix, memstore.Outcome{Fate: memstore.Damage, Keep: 20}},
			{"manifest gone", checkpoint.ManifestPrefix, memstore.NotFound()},
			{"manifest not reachable", checkpoint.ManifestPrefix, memstore.Unreachable()},
			{"log damaged", "log/", memstore.Outcome{Fate: memstore.Damage, Keep: 20}},
			{"log not reachable", "log/", memstore.Unreachable()},
		} {
			store.Rule(func(op memstore.Op) memstore.Outcome {
				if op.Verb == memstore.ReadAt && strings.HasPrefix(op.Name, tt.prefix) {
					return tt.outcome
				}
				return memstore.Outcome{}
			})
			polled := src.Polled(0)
			r := start(t, store, build(), onDemand(), nil)
			wait(time.Minute)
			_, err := r.stop()
			if err == nil || len(casekit.All[cluster.Started](r.Recorder)) > 0 || src.Polled(0) != polled {
				t.Errorf("%s: a leader that cannot read what it must restore runs (%v)", tt.name, err)
			}
		}
		store.Rule(nil)

		r = start(t, store, build(), onDemand(), nil)
		if s := casekit.All[cluster.Started](r.Recorder); len(s) != 1 || s[0].Restored != 7 || len(r.lines.With("restored=7")) != 1 {
			t.Errorf("started %+v, and said %q", s, r.lines.With("attempt started"))
		}
		if starts := src.Starts(0); !slices.Equal(starts, []int64{0, 350}) {
			t.Errorf("the source began at %v, want 350, where checkpoint 7 stands", starts)
		}
		src.Grow(0, 100)
		src.End()
		if _, err := r.end(time.Minute); err != nil {
			t.Fatal(err)
		}
		if got, want := apply(out.Visible()), apply(src.All()); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the table is\n%v\nwant\n%v", got, want)
		}
	})
}

// untriggered is a world whose trigger loop is silently dead: the timer of the
// schedule never fires.
type untriggered struct {
	cluster.Env
	interval time.Duration
}

func (e untriggered) After(d time.Duration, f func()) func() {
	if d == e.interval {
		return func() {}
	}
	return e.Env.After(d, f)
}

// A job without checkpoints is degraded, however well its subtasks do, and the
// metric of its age is that of the stored checkpoint and not of the process.
//
// Red: health was looked at by the timer of the schedule only (never told);
// launch did not take the age from the manifest (it began at 0 with the second
// process).
func TestCase_I05(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval, k = time.Second, 5
		src, store, out := casekit.NewSource(1, offsets), casekit.NewStore(), casekit.NewTxLog[keyCount]()
		o := staunch.Options{Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: interval}}
		dead := func(_ *cluster.Job, o *cluster.Options) {
			o.Env = untriggered{cluster.RealEnv(), interval}
			o.Checkpoint.SyncWarning = 10 * time.Second // another timer of 1 s otherwise
		}
		age := func(r *caseRun) time.Duration { return time.Duration(r.x.Metrics()["checkpoints.age_ns"]) }
		r := start(t, store, counting("i05", src, out), o, dead)
		src.Grow(0, 10)
		r.checkpoint() // on demand
		wait(k*interval - interval/2)
		if h := casekit.All[cluster.Health](r.Recorder); len(h) > 0 {
			t.Errorf("degraded too early: %+v", h)
		}
		wait(interval + interval/2)
		h := casekit.All[cluster.Health](r.Recorder)
		if len(h) != 1 || !h[0].Degraded || h[0].Age < k*interval || h[0].Age > (k+1)*interval {
			t.Errorf("after %v without a checkpoint: %+v", (k+1)*interval, h)
		}
		wait(10 * interval)
		if n := len(r.lines.With("degraded")); n != 3 {
			t.Errorf("%d lines say that the job is degraded for %v, want one each %v", n, age(r), k*interval)
		}
		was := age(r)
		if was < 15*interval || src.Polled(0) != 10 || r.ended() {
			t.Errorf("age %v", was)
		}
		r.stop()

		wait(interval)
		r = start(t, store, counting("i05", src, out), o, dead)
		wait(interval)
		if a := age(r); a < was+2*interval {
			t.Errorf("the age is %v in the next process, and was %v in the one before", a, was)
		}
		// The job is well: it has only begun. What it restored is as old as it is.
		if h := casekit.All[cluster.Health](r.Recorder); len(h) > 0 {
			t.Errorf("the next process tells %+v", h)
		}
		wait(k * interval)
		h = casekit.All[cluster.Health](r.Recorder)
		if len(h) != 1 || h[0].Age < k*interval || h[0].Age > (k+1)*interval || len(r.lines.With("degraded: no checkpoint since the start")) != 1 {
			t.Errorf("after %v without a checkpoint the next process tells %+v", (k+1)*interval, h)
		}
		if len(r.lines.With("age=")) == 0 {
			t.Error("the restore does not say how old the checkpoint is")
		}
		r.checkpoint()
		if h := casekit.All[cluster.Health](r.Recorder); len(h) != 2 || h[1].Degraded || age(r) > interval {
			t.Errorf("after a checkpoint: %+v, age %v", h, age(r))
		}
		r.stop()
	})
}

func viewOf(t *testing.T, s *casekit.Store) ckptlog.View {
	t.Helper()
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func latestFiles(t *testing.T, s *casekit.Store) []string {
	t.Helper()
	latest, _ := viewOf(t, s).Latest()
	files, err := s.Files(latest)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func missing(t *testing.T, s *casekit.Store, c ckptlog.Retained) []string {
	t.Helper()
	gone, err := s.Missing(c)
	if err != nil {
		t.Fatal(err)
	}
	return gone
}
