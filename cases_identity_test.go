package staunch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/state"
)

type total = staunch.KV[int, int64]

// evolving is a job that counts (by default as "c1") and sums up what it
// counted ("c2"); a test changes it from run to run.
type evolving struct {
	store *casekit.Store
	src   *casekit.Source[int]
	out   *casekit.TxLog[total]

	counter  string // "": there is none
	inserted bool   // a stateless operator ahead of it
	failing  func() error
}

func newEvolving() *evolving {
	return &evolving{
		store: casekit.NewStore(), out: casekit.NewTxLog[total](), counter: "c1",
		src: casekit.NewSource(1, func(_ int, off int64) int { return int(off % 4) }),
	}
}

func (e *evolving) job() *staunch.Job {
	j := staunch.NewJob("evolving")
	in := staunch.From(j, "in", e.src)
	if e.inserted {
		in = staunch.Map(in, func(v int) int { return v })
	}
	if e.failing != nil {
		in = staunch.TryMap(in, func(v int) (int, error) { return v, e.failing() })
	}
	key := func(v int) int { return v }
	counts := staunch.Map(in, func(v int) total { return total{Key: v, Value: 1} })
	if e.counter != "" {
		counts = staunch.Count(staunch.KeyBy(in, key), e.counter)
	}
	// The sums tell both: the n-th sum of a key is 1+2+...+n.
	k := staunch.KeyBy(counts, func(kv total) int { return kv.Key })
	sums := staunch.Reduce(k, "c2", func(a, kv total) total { return total{Key: kv.Key, Value: a.Value + kv.Value} })
	staunch.To(sums, "out", e.out)
	return j
}

// evolvingRun is one run, inside a synctest bubble.
type evolvingRun struct {
	*casekit.Recorder
	lines  *casekit.Lines
	cancel context.CancelFunc
	x      *cluster.Execution
}

func (e *evolving) start(t *testing.T, change func(*cluster.Options)) *evolvingRun {
	t.Helper()
	r := &evolvingRun{Recorder: &casekit.Recorder{}, lines: casekit.NewLines(slog.LevelInfo)}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	o := staunch.Options{
		Parallelism: 2, Checkpoint: staunch.CheckpointOptions{Interval: -1}, Storage: "mem:",
		Restart: staunch.FixedDelay(2, time.Millisecond), Log: slog.New(r.lines),
	}
	var err error
	r.x, err = staunch.StartWith(ctx, e.job(), o, func(_ *cluster.Job, o *cluster.Options) {
		o.Store, o.OnEvent = e.store.Open(), r.On
		change(o)
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func unchanged(*cluster.Options) {}

// feed makes n records, waits until they are processed, and takes a checkpoint.
func (r *evolvingRun) feed(t *testing.T, e *evolving, n int64) checkpoint.ID {
	t.Helper()
	e.src.Grow(0, n)
	synctest.Wait()
	id, err := r.x.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return id
}

// stop ends the run as a user does, without a last checkpoint.
func (r *evolvingRun) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if _, err := r.x.Wait(); err != nil {
		t.Fatal(err)
	}
}

func (r *evolvingRun) restored() (ids []checkpoint.ID) {
	for _, s := range casekit.All[cluster.Started](r.Recorder) {
		ids = append(ids, s.Restored)
	}
	return ids
}

// last are the newest sums by key.
func (e *evolving) last() map[int]int64 {
	m := map[int]int64{}
	for _, kv := range e.out.Visible() {
		m[kv.Key] = kv.Value
	}
	return m
}

// sums are of four keys, all equal.
func sums(n int64) map[int]int64 { return map[int]int64{0: n, 1: n, 2: n, 3: n} }

func wantSums(t *testing.T, e *evolving, n int64, when string) {
	t.Helper()
	if got := e.last(); !equalMaps(got, sums(n)) {
		t.Errorf("%s: sums %v, want %v", when, got, sums(n))
	}
}

func equalMaps(a, b map[int]int64) bool {
	return fmt.Sprint(a) == fmt.Sprint(b) // printed in the order of keys
}

// State is found by the operator's name, whatever the graph looks like around
// it; what nobody claims is refused by name, with what it might be now.
//
// Red: a state that nobody claims was not refused.
func TestCase_D01(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEvolving()
		v1 := e.start(t, unchanged)
		v1.feed(t, e, 8) // two of each key: sums 1, 1+2
		v1.stop(t)
		wantSums(t, e, 3, "v1")

		e.inserted = true
		v2 := e.start(t, unchanged)
		id := v2.feed(t, e, 4)
		v2.stop(t)
		wantSums(t, e, 6, "v2, an operator inserted")

		e.counter = "c9"
		refused := e.start(t, unchanged)
		_, err := ended(t, refused.x)
		if err == nil {
			t.Fatal("v3, c1 renamed to c9: it started")
		}
		for _, want := range []string{fmt.Sprintf("checkpoint %d", id), `operator "c1"`, "4 entries", "(new without state: c9)", `FormerNames("c1")`, "-drop-state c1"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("v3: missing %q in %v", want, err)
			}
		}
		if n := len(casekit.All[cluster.Started](refused.Recorder)) + len(casekit.All[cluster.Restarting](refused.Recorder)); n > 0 {
			t.Errorf("v3: %d attempts began, or were tried again", n)
		}

		dropping := e.start(t, func(o *cluster.Options) { o.DropState = []string{"c1"} })
		dropping.feed(t, e, 4)
		dropping.stop(t)
		wantSums(t, e, 7, "v3, c1 dropped: c9 begins at 0, c2 goes on")
		if got := dropping.lines.With("state is dropped"); len(got) != 1 || !strings.Contains(got[0], "state=c1") || !strings.Contains(got[0], "entries=4") || !strings.Contains(got[0], "bytes=") {
			t.Errorf("v3 said %q", got)
		}
	})

	j := staunch.NewJob("nameless")
	staunch.To(staunch.Count(staunch.KeyBy(staunch.FromSlice(j, "in", numbers(3)), func(v int) int { return v }), ""), "out", newMemory[total]())
	if _, err := staunch.Run(t.Context(), j, quiet(staunch.Options{})); err == nil || !strings.Contains(err.Error(), "has no name: its name is the identity of its state") {
		t.Errorf("a stateful operator without a name: %v", err)
	}
}

// Dropped state is dropped in the same way, with the same words, by whichever
// way a run comes to its checkpoint.
//
// Red: only a start from a named checkpoint was given the states to drop.
func TestCase_D03(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := map[string][]string{}
		drop := func(o *cluster.Options) { o.DropState, o.Takeover = []string{"c1"}, true }
		for _, way := range []string{"by id", "of a crashed start", "after a failed attempt"} {
			e := newEvolving()
			before := e.start(t, unchanged)
			id := before.feed(t, e, 8)
			before.feed(t, e, 0)
			before.stop(t)

			e.counter = ""
			var after *evolvingRun
			want := []checkpoint.ID{id + 1}
			switch way {
			case "by id":
				want[0] = id
				after = e.start(t, func(o *cluster.Options) { drop(o); o.From = id })
			case "of a crashed start":
				h := e.store.Open()
				crashed := e.start(t, func(o *cluster.Options) { drop(o); o.Store = h })
				synctest.Wait()
				if got := crashed.restored(); !slices.Equal(got, want) || len(crashed.Completed()) > 0 {
					t.Fatalf("%s: it restored %v", way, got)
				}
				h.Kill() // before its first checkpoint
				defer crashed.cancel()
				after = e.start(t, drop)
			case "after a failed attempt":
				failed := false
				e.failing = func() (err error) {
					if !failed {
						failed, err = true, errors.New("made to fail")
					}
					return err
				}
				want = append(want, want[0])
				after = e.start(t, drop)
			}
			after.feed(t, e, 4)
			after.feed(t, e, 0) // the first checkpoint of a restarted attempt may come ahead of the records
			after.stop(t)
			if got := after.restored(); !slices.Equal(got, want) {
				t.Errorf("%s: restored %v, want %v", way, got, want)
			}
			wantSums(t, e, 4, way) // 1+2, and 1 of each record since
			for _, line := range after.lines.With("state is dropped") {
				_, line, _ = strings.Cut(line, "msg=")
				said[way] = append(said[way], strings.ReplaceAll(line, fmt.Sprintf("checkpoint=%d", want[0]), "checkpoint=N"))
			}
			if len(said[way]) != len(want) || said[way][0] != said["by id"][0] {
				t.Errorf("%s: it said %q; by id %q", way, said[way], said["by id"])
			}
		}
	})
}

// tangle builds a graph of branches in the order of names, with operators that
// the user did not name.
func tangle(names []string) *staunch.Job {
	j := staunch.NewJob("tangle")
	for _, name := range names {
		in := staunch.From(j, name, casekit.NewSource(1, func(int, int64) int { return 0 }))
		mapped := staunch.Filter(staunch.Map(in, func(v int) int { return v }), func(int) bool { return true })
		k := staunch.KeyBy(mapped, func(v int) int { return v })
		out := staunch.Process(k, "keep "+name, func(s *staunch.Setup) staunch.ProcessFunc[int, int, int] {
			n := state.NewValue[int](s, "n")
			return func(c *staunch.Ctx[int], _ int, v int) error { n.Set(v); c.Emit(v); return nil }
		})
		staunch.To(staunch.Map(out, func(v int) int { return v }, staunch.NoChain()), "to "+name, casekit.NewTxLog[int]())
	}
	return j
}

var tangled = map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true}

// identities are the names under which a checkpoint would keep what a job has,
// of all operators and of those that keep something: the latter do not depend
// on the order in which the graph was put together either.
func identities(names []string) (all, keeping string, err error) {
	p, err := tangle(names).Plan(staunch.Options{Storage: "mem:", Parallelism: 2})
	if err != nil {
		return "", "", err
	}
	var lines, kept []string
	for _, op := range p.Operators {
		line := fmt.Sprintf("%s %q in %q: %q", op.Kind, op.Name, op.Chain, op.States)
		lines = append(lines, line)
		if op.Kind != "map" && op.Kind != "filter" {
			kept = append(kept, line)
		}
	}
	slices.Sort(kept)
	return strings.Join(lines, "\n"), strings.Join(kept, "\n"), nil
}

// The same program makes the same identities, in every process.
//
// Red: a random part in the names of operators that the user did not name.
func TestCase_D02(t *testing.T) {
	const child = "STAUNCH_CASE_D02"
	builds, processes := 100, 2
	if testing.Short() {
		builds, processes = 10, 1
	}
	names := slices.Sorted(maps.Keys(tangled))
	want, kept, err := identities(names)
	if err != nil {
		t.Fatal(err)
	}
	for i := range builds {
		if got, _, err := identities(names); err != nil || got != want {
			t.Fatalf("build %d: %v\n%s\nwant\n%s", i, err, got, want)
		}
		if _, got, err := identities(slices.Collect(maps.Keys(tangled))); err != nil || got != kept {
			t.Fatalf("build %d in another order: %v\n%s\nwant\n%s", i, err, got, kept)
		}
	}
	if os.Getenv(child) != "" {
		os.WriteFile(os.Getenv(child), []byte(want), 0o600)
		return
	}
	for i := range processes {
		file := t.TempDir() + "/ids"
		cmd := exec.Command(os.Args[0], "-test.run=^TestCase_D02$", "-test.short")
		cmd.Env = append(os.Environ(), child+"="+file, fmt.Sprint("TZ=UTC", i), fmt.Sprint("ANY=", i), "GOMAXPROCS=1")
		cmd.Dir = t.TempDir()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("child: %v\n%s", err, out)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("process %d: %v\n%s\nwant\n%s", i, err, got, want)
		}
	}
}

// A name that was dropped may stay on the command line: the next start, which does
// not find it, is told so and goes on.
func TestDroppedStateIsGoneAtTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEvolving()
		before := e.start(t, unchanged)
		id := before.feed(t, e, 4)
		before.stop(t)

		e.counter = ""
		fails := make(chan error, 1)
		e.failing = func() error {
			select {
			case err := <-fails:
				return err
			default:
				return nil
			}
		}
		drop := func(o *cluster.Options) { o.DropState = []string{"c1"} }
		dropping := e.start(t, drop)
		dropping.feed(t, e, 4)
		fails <- errors.New("made to fail")
		e.src.Grow(0, 4)
		time.Sleep(time.Second) // of the bubble's clock: the restart's delay is over
		dropping.feed(t, e, 0)
		dropping.stop(t)
		if got := dropping.restored(); !slices.Equal(got, []checkpoint.ID{id, id + 1}) {
			t.Errorf("restored %v, from %d on", got, id)
		}
		wantSums(t, e, 3, "c1 dropped, and a restart since")

		again := e.start(t, drop)
		again.feed(t, e, 0)
		again.stop(t)
		if said := again.lines.With("is not in the checkpoint"); len(said) != 1 || !strings.Contains(said[0], "nothing can be dropped: the job claims all of it") {
			t.Errorf("the next run, which drops it again, says %q", said)
		}
	})
}
