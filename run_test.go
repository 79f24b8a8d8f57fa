package staunch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/state"
)

// memory is a transactional sink that keeps in memory what was committed.
type memory[T any] struct {
	mu        sync.Mutex
	next      int
	prepared  map[string][]T
	committed []T
}

func newMemory[T any]() *memory[T] { return &memory[T]{prepared: map[string][]T{}} }

func (m *memory[T]) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Transactional, System: "memory"}
}

func (m *memory[T]) Writer(context.Context, connector.Instance) (connector.Writer[T], error) {
	return &memoryWriter[T]{m: m}, nil
}

func (m *memory[T]) Commit(_ context.Context, cs []connector.Committable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range cs {
		m.committed = append(m.committed, m.prepared[c.ID]...)
		delete(m.prepared, c.ID)
	}
	return nil
}

func (m *memory[T]) Recover(ctx context.Context, _ connector.Instance, pending []connector.Committable) error {
	return m.Commit(ctx, pending)
}

func (m *memory[T]) visible() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.committed)
}

type memoryWriter[T any] struct {
	m       *memory[T]
	written []T
}

func (w *memoryWriter[T]) Write(_ context.Context, b connector.Batch[T]) error {
	w.written = append(w.written, b.Values...)
	return nil
}

func (w *memoryWriter[T]) Prepare(context.Context, connector.CheckpointID) ([]connector.Committable, error) {
	if len(w.written) == 0 {
		return nil, nil
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.next++
	id := fmt.Sprint(w.m.next)
	w.m.prepared[id], w.written = w.written, nil
	return []connector.Committable{{ID: id}}, nil
}

func (w *memoryWriter[T]) Close() error { return nil }

func quiet(o staunch.Options) staunch.Options {
	o.Log = slog.New(slog.DiscardHandler)
	if o.Storage == "" {
		o.Storage = "mem:"
	}
	return o
}

func numbers(n int) []int {
	vs := make([]int, n)
	for i := range vs {
		vs[i] = i
	}
	return vs
}

// Every built-in at parallelism 2, over a shuffle, against what it should be.
func TestBuiltIns(t *testing.T) {
	type pair = staunch.KV[int, int64]
	mod := func(v int) int { return v % 7 }
	counts, sums, firsts, latest, maxima := newMemory[pair](), newMemory[int](), newMemory[int](), newMemory[int](), newMemory[staunch.KV[int, string]]()
	j := staunch.NewJob("builtins")
	in := staunch.KeyBy(staunch.FromSlice(j, "in", numbers(5000)), mod)
	staunch.To(staunch.Count(in, "count"), "counts", counts)
	staunch.To(staunch.Reduce(in, "sum", func(a, v int) int { return a + v }), "sums", sums)
	staunch.To(staunch.Distinct(in, "first"), "firsts", firsts)
	staunch.To(staunch.Latest(in, "latest", func(v int) int { return -v }), "latests", latest)
	longest := staunch.Aggregator[int, []string, string]{
		Add: func(acc []string, v int) []string {
			if s := fmt.Sprint(v); len(acc) == 0 || len(s) > len(acc[0]) {
				return []string{s}
			}
			return acc
		},
		Result:     func(acc []string) string { return acc[0] },
		Properties: staunch.Absorbing,
	}
	staunch.To(staunch.Aggregate(in, "longest", longest), "longests", maxima)
	r, err := staunch.Run(t.Context(), j, quiet(staunch.Options{Parallelism: 2}))
	if err != nil {
		t.Fatal(err)
	}
	if r.Records["in"] != 5000 || r.Records["counts"] != 5000 || r.Checkpoints < 1 {
		t.Errorf("result %+v", r)
	}
	last, n := map[int]int64{}, 0
	for _, kv := range counts.visible() {
		if kv.Value != last[kv.Key]+1 {
			t.Fatalf("key %d: count %d follows %d", kv.Key, kv.Value, last[kv.Key])
		}
		last[kv.Key] = kv.Value
		n++
	}
	if n != 5000 {
		t.Errorf("%d counts", n)
	}
	// 714 or 715 of the 5000 have each rest; of the greatest sum it is 1.
	most := 0
	for v := 1; v < 5000; v += 7 {
		most += v
	}
	if got := sums.visible(); len(got) != 5000 || slices.Max(got) != most {
		t.Errorf("%d sums, up to %d, want %d", len(got), slices.Max(got), most)
	}
	for name, got := range map[string][]int{"firsts": firsts.visible(), "latest": latest.visible()} {
		slices.Sort(got)
		if !slices.Equal(got, numbers(7)) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := maxima.visible(); len(got) < 4*7-3 || len(got) > 4*7 {
		t.Errorf("%d changes of the longest: emitted without a change", len(got))
	}
}

// failing fails or panics on its third record, in the first attempt.
func failing(fail func(v int) error) func(*staunch.Setup) staunch.ProcessFunc[int, int, int] {
	return func(s *staunch.Setup) staunch.ProcessFunc[int, int, int] {
		return func(c *staunch.Ctx[int], _ int, v int) error {
			if err := fail(v); err != nil {
				return err
			}
			c.Emit(v)
			return nil
		}
	}
}

func TestUserErrorsNameOperatorAndKey(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name string
		fail func(v int) error
		want []string
	}{
		{"error", func(v int) error {
			if v == 3 {
				return boom
			}
			return nil
		}, []string{`operator "op", key 3: boom`}},
		{"panic", func(v int) error {
			if v == 3 {
				panic("at the disco")
			}
			return nil
		}, []string{"op", "key 3, record 3", "at the disco", "run_test.go"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := staunch.NewJob("j")
			k := staunch.KeyBy(staunch.FromSlice(j, "in", numbers(10)), func(v int) int { return v })
			staunch.To(staunch.Process(k, "op", failing(tt.fail)), "out", newMemory[int]())
			_, err := staunch.Run(t.Context(), j, quiet(staunch.Options{Restart: staunch.NoRestart()}))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("missing %q in %v", want, err)
				}
			}
			if tt.name == "error" && !errors.Is(err, boom) {
				t.Errorf("%v does not wrap the user's error", err)
			}
		})
	}
}

// counted checks that out has the counts of numbers(n) by v%keys, each once.
func counted(t *testing.T, out []staunch.KV[int, int64], n, keys int) {
	t.Helper()
	seen := map[staunch.KV[int, int64]]bool{}
	for _, kv := range out {
		if seen[kv] {
			t.Errorf("%v is visible twice", kv)
		}
		seen[kv] = true
	}
	for v := range n {
		if kv := (staunch.KV[int, int64]{Key: v % keys, Value: int64(v/keys) + 1}); !seen[kv] {
			t.Fatalf("%v is missing; %d are visible of %d", kv, len(seen), n)
		}
	}
	if len(seen) != n {
		t.Errorf("%d are visible, want %d", len(seen), n)
	}
}

func TestARestartGoesOnFromTheCheckpoint(t *testing.T) {
	const n, keys = 2000, 3
	var checkpoints, failures atomic.Int32
	j := staunch.NewJob("j")
	k := staunch.KeyBy(staunch.FromSlice(j, "in", numbers(n), staunch.Rate(10_000)), func(v int) int { return v % keys })
	same := staunch.Process(k, "op", failing(func(v int) error {
		// Only behind a checkpoint, so that the restart has one to go on from.
		if checkpoints.Load() > failures.Load() && failures.Load() < 2 {
			failures.Add(1)
			return errors.New("not yet")
		}
		return nil
	}))
	out := newMemory[staunch.KV[int, int64]]()
	staunch.To(staunch.Count(staunch.KeyBy(same, func(v int) int { return v % keys }), "count"), "out", out)
	var causes, restored []string
	r, err := staunch.Run(t.Context(), j, quiet(staunch.Options{
		Parallelism: 2, Restart: staunch.FixedDelay(5, time.Millisecond), Checkpoint: staunch.CheckpointOptions{Interval: 10 * time.Millisecond},
		OnEvent: func(e staunch.Event) {
			switch e := e.(type) {
			case staunch.Checkpointed:
				checkpoints.Add(1)
			case staunch.Restarting:
				causes = append(causes, e.Cause.Error())
			case staunch.Restored:
				restored = append(restored, fmt.Sprint(e.ID))
			}
		},
	}))
	if err != nil || r.Restarts != 2 || len(causes) != 2 || !strings.Contains(causes[0], `operator "op", key `) || !strings.Contains(causes[0], "not yet") {
		t.Fatalf("restarts %d, causes %q, error %v", r.Restarts, causes, err)
	}
	if len(restored) != 2 {
		t.Errorf("restored from %q, want two checkpoints", restored)
	}
	counted(t, out.visible(), n, keys)
}

func TestARunAtAnotherParallelismGoesOn(t *testing.T) {
	const n, keys = 2000, 50
	out := newMemory[staunch.KV[int, int64]]()
	build := func() *staunch.Job {
		j := staunch.NewJob("j")
		k := staunch.KeyBy(staunch.FromSlice(j, "in", numbers(n), staunch.Rate(10_000)), func(v int) int { return v % keys })
		staunch.To(staunch.Count(k, "count"), "out", out)
		return j
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := quiet(staunch.Options{
		Storage: "mem:" + t.Name(), Parallelism: 2, Checkpoint: staunch.CheckpointOptions{Interval: 10 * time.Millisecond},
		OnEvent: func(e staunch.Event) {
			if c, ok := e.(staunch.Checkpointed); ok && c.ID == 3 {
				cancel()
			}
		},
	})
	if _, err := staunch.Run(ctx, build(), o); err != nil {
		t.Fatal(err)
	}
	if len(out.visible()) >= n {
		t.Fatal("the first run was not cut short")
	}
	o.Parallelism, o.OnEvent = 3, nil
	r, err := staunch.Run(t.Context(), build(), o)
	if err != nil || r.RestoredFrom < 3 {
		t.Fatalf("restored from %d, error %v", r.RestoredFrom, err)
	}
	counted(t, out.visible(), n, keys)
}

// early uses its state before a key is in hand.
type early struct{ n state.Value[int] }

func (e *early) Open(context.Context, connector.Instance) error { e.n.Get(); return nil }

func (e *early) Process(*staunch.Ctx[int], int, int) error { return nil }

func TestStateOutsideACallIsRefused(t *testing.T) {
	j := staunch.NewJob("j")
	k := staunch.KeyBy(staunch.FromSlice(j, "in", numbers(3)), func(v int) int { return v })
	staunch.To(staunch.Process(k, "op", func(s *staunch.Setup) *early { return &early{state.NewValue[int](s, "n")} }), "out", newMemory[int]())
	_, err := staunch.Run(t.Context(), j, quiet(staunch.Options{Restart: staunch.NoRestart()}))
	if err == nil || !strings.Contains(err.Error(), `operator "op": open: panic: state "n" was used outside a call`) {
		t.Errorf("got %v", err)
	}
}

func TestDeadLettersTakeBackWhatTheRecordEmitted(t *testing.T) {
	bad := staunch.NewSide[staunch.Failed[int]]("bad")
	j := staunch.NewJob("j")
	twice := staunch.FlatMap(staunch.FromSlice(j, "in", numbers(6)), func(c *staunch.Ctx[int], v int) error {
		c.Emit(v)
		if v%3 == 2 {
			return fmt.Errorf("do not like %d", v)
		}
		c.Emit(v)
		return nil
	}, staunch.DeadLetter(bad), staunch.Named("twice"))
	good, dead := newMemory[int](), newMemory[staunch.Failed[int]]()
	staunch.To(twice, "good", good)
	staunch.To(staunch.SideOf(twice, bad), "dead", dead)
	if _, err := staunch.Run(t.Context(), j, quiet(staunch.Options{Parallelism: 1})); err != nil {
		t.Fatal(err)
	}
	if got, want := good.visible(), []int{0, 0, 1, 1, 3, 3, 4, 4}; !slices.Equal(got, want) {
		t.Errorf("good %v, want %v", got, want)
	}
	want := []staunch.Failed[int]{{2, "do not like 2", "twice"}, {5, "do not like 5", "twice"}}
	if got := dead.visible(); !slices.Equal(got, want) {
		t.Errorf("dead %v, want %v", got, want)
	}
}

func TestTimersFireOncePerKey(t *testing.T) {
	j := staunch.NewJob("j")
	in := make(chan int)
	src := &connector.Pull[int]{
		Describe: connector.SourceSpec{Bounded: true, Replayable: true},
		Splits: func(context.Context) ([]connector.Split, error) {
			return []connector.Split{{ID: "s"}}, nil
		},
		Read: func(ctx context.Context, s connector.Split, emit func(int, connector.Offset) error) error {
			for v := range in {
				if err := emit(v, connector.Offset{N: 1}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	fired := make(chan int, 10)
	k := staunch.KeyBy(staunch.From(j, "in", src), func(v int) int { return v })
	staunch.To(staunch.Process(k, "op", func(s *staunch.Setup) *alarm {
		return &alarm{soon: s.ProcessingTimer("soon"), never: s.ProcessingTimer("never"), fired: fired}
	}), "out", newMemory[int]())
	x, err := staunch.Start(t.Context(), j, quiet(staunch.Options{Parallelism: 2}))
	if err != nil {
		t.Fatal(err)
	}
	in <- 1
	in <- 2
	got := []int{<-fired, <-fired}
	slices.Sort(got)
	close(in)
	if _, err := x.Wait(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []int{1, 2}) || len(fired) > 0 {
		t.Errorf("fired for %v and %d more", got, len(fired))
	}
}

type alarm struct {
	soon, never staunch.Timer
	fired       chan int
}

func (a *alarm) Process(c *staunch.Ctx[int], key int, _ int) error {
	a.soon.Set(c.Now().Add(time.Hour)) // replaced
	a.soon.Set(c.Now().Add(time.Millisecond))
	a.never.Set(c.Now())
	a.never.Clear()
	if _, ok := a.never.At(); ok {
		return errors.New("a cleared timer is set")
	}
	return nil
}

func (a *alarm) OnTimer(c *staunch.Ctx[int], key int, t staunch.Timer) error {
	if t != a.soon {
		return fmt.Errorf("timer %q fired", t.Name())
	}
	if _, ok := t.At(); ok {
		return errors.New("a timer that fires is still set")
	}
	a.fired <- key
	return nil
}

func TestEndOfContextIsNoError(t *testing.T) {
	j := staunch.NewJob("j")
	src := &connector.Pull[int]{
		Describe: connector.SourceSpec{Replayable: true},
		Splits:   func(context.Context) ([]connector.Split, error) { return []connector.Split{{ID: "s"}}, nil },
		Read: func(ctx context.Context, s connector.Split, emit func(int, connector.Offset) error) error {
			for i := s.Next.N; ; i++ {
				if err := emit(int(i), connector.Offset{N: i + 1}); err != nil {
					return err
				}
			}
		},
	}
	staunch.To(staunch.From(j, "in", src), "out", newMemory[int]())
	ctx, cancel := context.WithCancel(t.Context())
	x, err := staunch.Start(ctx, j, quiet(staunch.Options{Checkpoint: staunch.CheckpointOptions{Interval: -1}}))
	if err != nil {
		t.Fatal(err)
	}
	id, err := x.Checkpoint(t.Context())
	for err != nil && t.Context().Err() == nil { // declined until all subtasks are ready
		id, err = x.Checkpoint(t.Context())
	}
	if id == 0 {
		t.Errorf("checkpoint %d: %v", id, err)
	}
	cancel()
	if r, err := x.Wait(); err != nil || r.Checkpoints != 1 {
		t.Errorf("result %+v, error %v", r, err)
	}
}

func TestCommandLine(t *testing.T) {
	build := func() *staunch.Job {
		j := staunch.NewJob("j")
		staunch.To(staunch.FromSlice(j, "in", numbers(10)), "out", newMemory[int]())
		j.Defaults(quiet(staunch.Options{Parallelism: 1}))
		return j
	}
	for _, tt := range []struct {
		args        string
		status      int
		out, errOut string
	}{
		{"", 0, "in=10 out=10 checkpoints=1 restarts=0 seconds=0.", ""},
		{"run -mode at-least-once", 0, "mode at-least-once", ""},
		{"-mode at-most-once plan -parallelism 3", 0, "mode at-most-once, parallelism 3", ""},
		{"plan -require exactly-once", 0, "end to end: exactly-once", ""},
		{"-mode at-least-once -require exactly-once", 1, "", "exactly-once is required"},
		{"-mode sometimes", 2, "", `unknown guarantee "sometimes"`},
		{"fly", 2, "", `unknown verb "fly"`},
		{"plan now", 2, "", `plan takes no arguments, but was given ["now"]`},
		{"-wings", 2, "", "usage: "},
		{"-h", 0, "", "-drop-state"},
		{"-storage s3://b/p", 1, "", "this version has no such store"},
		{"-timeout -1s", 1, "", "Timeout is -1s: "},
		{"plan -o json", 2, "", "plan: -o belongs to checkpoints"},
		{"-o json", 2, "", "run: -o belongs to checkpoints"},
		{"-h", 0, "", "flags of checkpoints:\n  -barriers"},
		{"-from 7", 1, "", "7"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if got := staunch.Command(t.Context(), strings.Fields(tt.args), &out, &errOut, build); got != tt.status {
				t.Errorf("exit status %d, want %d", got, tt.status)
			}
			if !strings.Contains(out.String(), tt.out) || !strings.Contains(errOut.String(), tt.errOut) {
				t.Errorf("stdout %q, stderr %q; want %q, %q", out.String(), errOut.String(), tt.out, tt.errOut)
			}
		})
	}
}

func TestRateFlagHoldsForEverySource(t *testing.T) {
	build := func() *staunch.Job {
		j := staunch.NewJob("j")
		staunch.To(staunch.FromSlice(j, "in", numbers(100)), "out", newMemory[int]())
		j.Defaults(quiet(staunch.Options{}))
		return j
	}
	var out bytes.Buffer
	began := time.Now()
	if status := staunch.Command(t.Context(), []string{"-rate", "400"}, &out, &out, build); status != 0 {
		t.Fatal(out.String())
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("100 records at 400 a second took %v", took)
	}
}

func TestCommandSaysWhatItResumes(t *testing.T) {
	build := func() *staunch.Job {
		j := staunch.NewJob("j")
		staunch.To(staunch.FromSlice(j, "in", numbers(10)), "out", newMemory[int]())
		j.Defaults(quiet(staunch.Options{Storage: "mem:" + t.Name()}))
		return j
	}
	var first, second bytes.Buffer
	if status := staunch.Command(t.Context(), nil, &first, &first, build); status != 0 || strings.Contains(first.String(), "resumed") {
		t.Errorf("status %d: %s", status, first.String())
	}
	if status := staunch.Command(t.Context(), nil, &second, &second, build); status != 0 || !strings.Contains(second.String(), "resumed from checkpoint 1") {
		t.Errorf("status %d: %s", status, second.String())
	}
}

// sleeper sets a timer far away for every key.
type sleeper struct{ wake staunch.Timer }

func (s *sleeper) Process(c *staunch.Ctx[int], _, _ int) error {
	s.wake.Set(c.Now().Add(time.Hour))
	return nil
}

func (*sleeper) OnTimer(*staunch.Ctx[int], int, staunch.Timer) error { return nil }

// Timers that are not due when the input ends never fire. That is said once an
// operator, not once a subtask.
func TestTimersThatTheEndOfInputLeavesAreTold(t *testing.T) {
	j := staunch.NewJob("j")
	slept := staunch.Process(staunch.KeyBy(staunch.FromSlice(j, "in", numbers(10)), func(v int) int { return v }), "sleeper",
		func(s *staunch.Setup) *sleeper { return &sleeper{s.ProcessingTimer("wake")} }, staunch.Parallelism(4))
	staunch.To(slept, "out", newMemory[int]())
	var log bytes.Buffer
	o := quiet(staunch.Options{})
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if _, err := staunch.Run(t.Context(), j, o); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "operator=sleeper") || !strings.Contains(got, "timers=10") {
		t.Errorf("it warned:\n%s", got)
	}
}
