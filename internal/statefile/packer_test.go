package statefile

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

func timed(o Options) Options {
	o.SealAfter = 50 * time.Millisecond
	return named(o)
}

// checkRun checks that the run holds the entries.
func checkRun(t *testing.T, s *mapStore, ref checkpoint.Ref, objects []checkpoint.Object, entries []Entry) {
	t.Helper()
	r, err := OpenRun(t.Context(), s, ref, objects)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t.Context(), r, Everything)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffEntries(entries, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestSubtasksPackConcurrently(t *testing.T) {
	defer goleak.VerifyNone(t)
	base := seed(t)
	s := newMapStore()
	p := NewPacker(t.Context(), s, timed(Options{ObjectBytes: 1 << 20}))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewSource(base + int64(i)))
			handle := p.Subtask()
			var runs []*Pending
			var want [][]Entry
			for range 12 {
				entries := fixedEntries(1+rnd.Intn([]int{20, 1000, 20000}[rnd.Intn(3)]), rnd.Uint64())
				want = append(want, entries)
				w := handle.NewRun(fixed16)
				for _, e := range entries {
					if err := w.Add(e.Hash, e.Key, nil, e.Value, 0); err != nil {
						t.Error(err)
					}
				}
				if rnd.Intn(5) == 0 {
					w.Abort()
					want = want[:len(want)-1]
					continue
				}
				r, err := w.Finish()
				if err != nil {
					t.Error(err)
					return
				}
				runs = append(runs, r)
			}
			refs, objects, err := Collect(t.Context(), runs...)
			if err != nil {
				t.Error(err)
				return
			}
			for i, ref := range refs {
				checkRun(t, s, ref, objects, want[i])
				if err := Verify(t.Context(), s, ref, objects); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	p.Abort()
	if n := s.writers(); n != 0 {
		t.Errorf("%d writers left open", n)
	}
}

func TestSlowSubtaskHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMapStore()
		p := NewPacker(t.Context(), s, timed(Options{}))
		slow := p.Subtask()
		// The slow subtask has finished a run and streams the next one.
		first := add(t, slow, fixed16, fixedEntries(20000, 0))
		w := slow.NewRun(fixed16)
		for _, e := range fixedEntries(20000, 1) {
			if err := w.Add(e.Hash, e.Key, nil, e.Value, 0); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		for i, n := range []int{300, 3000, 20000} {
			refs, objects, err := Collect(t.Context(), add(t, p.Subtask(), fixed16, fixedEntries(n, 0)))
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took > time.Duration(i+1)*50*time.Millisecond {
				t.Errorf("run of %d entries was durable after %v", n, took)
			}
			checkRun(t, s, refs[0], objects, fixedEntries(n, 0))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := first.WaitDurable(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a run is durable while its object is written to: %v", err)
		}
		second, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		begin = time.Now()
		if _, objects, err := Collect(t.Context(), first, second); err != nil || len(objects) != 1 {
			t.Errorf("objects %v, %v", objects, err)
		}
		if took := time.Since(begin); took != 50*time.Millisecond {
			t.Errorf("sealed after %v", took)
		}
	})
}

// The object of a finished subtask is not the place for another one's stream.
func TestStreamEntersNoObjectInWhichOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPacker(t.Context(), newMapStore(), timed(Options{}))
		done := add(t, p.Subtask(), fixed16, fixedEntries(20000, 0))
		small := add(t, p.Subtask(), fixed16, fixedEntries(300, 0))
		slow := p.Subtask().NewRun(fixed16)
		defer slow.Abort()
		for _, e := range fixedEntries(20000, 1) {
			if err := slow.Add(e.Hash, e.Key, nil, e.Value, 0); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		if _, _, err := Collect(t.Context(), done, small); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 50*time.Millisecond {
			t.Errorf("durable after %v", took)
		}
	})
}

// A run that is being written when the time of the others is up has them sealed
// as soon as it ends.
func TestSlowWriteToSharedObjectSealsAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMapStore()
		p := NewPacker(t.Context(), s, timed(Options{}))
		begin := time.Now()
		first := add(t, p.Subtask(), fixed16, fixedEntries(300, 0))
		s.fail = func(verb, name string) error {
			if verb == "bytes" {
				<-time.After(80 * time.Millisecond) // the disk is slow
			}
			return nil
		}
		add(t, p.Subtask(), fixed16, fixedEntries(300, 0))
		if _, _, err := first.WaitDurable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 80*time.Millisecond {
			t.Errorf("durable after %v", took)
		}
	})
}

// A shared object is sealed SealAfter after its first run, however many follow.
func TestSteadySmallRunsDoNotDelayTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPacker(t.Context(), newMapStore(), timed(Options{}))
		begin := time.Now()
		first := add(t, p.Subtask(), fixed16, fixedEntries(300, 0))
		stop, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					add(t, p.Subtask(), fixed16, fixedEntries(300, 0))
				case <-stop.Done():
					return
				}
			}
		})
		if _, _, err := first.WaitDurable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 50*time.Millisecond {
			t.Errorf("durable after %v", took)
		}
		cancel()
		wg.Wait()
		p.Abort()
	})
}

func TestSmallRunsShareAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMapStore()
		p := NewPacker(t.Context(), s, timed(Options{}))
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if _, _, err := add(t, p.Subtask(), fixed16, fixedEntries(300, 0)).WaitDurable(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s.visible() != 1 {
			t.Errorf("%d objects", s.visible())
		}
	})
}

func TestFullObjectIsSealedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMapStore()
		p := NewPacker(t.Context(), s, timed(Options{ObjectBytes: 100 << 10}))
		begin := time.Now()
		var runs []*Pending
		for range 4 {
			runs = append(runs, add(t, p, fixed16, fixedEntries(4000, 0))) // 64 KB each
		}
		if _, objects, err := Collect(t.Context(), runs...); err != nil || len(objects) != 2 {
			t.Errorf("objects %v, %v", objects, err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("durable after %v", took)
		}
	})
}

func TestFlushSealsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMapStore()
		p := NewPacker(t.Context(), s, timed(Options{}))
		begin := time.Now()
		a := add(t, p.Subtask(), fixed16, fixedEntries(300, 0))
		b := add(t, p.Subtask(), fixed16, fixedEntries(20000, 0))
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Collect(t.Context(), a, b); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != 0 {
			t.Errorf("durable after %v", took)
		}
	})
}

func TestWithoutTimerTheWaiterSeals(t *testing.T) {
	s := newMapStore()
	p := NewPacker(t.Context(), s, named(Options{}))
	h, other := p.Subtask(), p.Subtask()
	w := other.NewRun(fixed16) // streams meanwhile
	for _, e := range fixedEntries(20000, 0) {
		if err := w.Add(e.Hash, e.Key, nil, e.Value, 0); err != nil {
			t.Fatal(err)
		}
	}
	refs, objects, err := Collect(t.Context(), add(t, h, fixed16, fixedEntries(300, 0)), add(t, h, fixed16, fixedEntries(20000, 1)))
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects %v, %v", objects, err)
	}
	checkRun(t, s, refs[0], objects, fixedEntries(300, 0))
	checkRun(t, s, refs[1], objects, fixedEntries(20000, 1))
	w.Abort()
	if s.writers() != 0 || s.visible() != 1 {
		t.Errorf("%d writers open, %d objects", s.writers(), s.visible())
	}
}

func TestInlineBudgets(t *testing.T) {
	s := newMapStore()
	p := NewPacker(t.Context(), s, named(Options{}))
	total, spilled := 0, 0
	for sub := range 20 {
		h := p.Subtask()
		own := 0
		var runs []*Pending
		for range 20 {
			runs = append(runs, add(t, h, fixed16, fixedEntries(230, 0))) // about 3.8 KB
		}
		refs, _, err := Collect(t.Context(), runs...)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			if ref.Object >= 0 {
				spilled++
			}
			if len(ref.Inline) > InlineRun {
				t.Errorf("inline run of %d bytes", len(ref.Inline))
			}
			own += len(ref.Inline)
		}
		if own > InlineSubtask || sub == 0 && own < InlineSubtask-InlineRun {
			t.Errorf("subtask %d has %d bytes inline", sub, own)
		}
		total += own
	}
	if total > InlinePacker || total < InlinePacker-InlineRun || spilled == 0 {
		t.Errorf("%d bytes inline, %d runs spilled", total, spilled)
	}
	if ref, _ := write(t, newMapStore(), fixed16, fixedEntries(400, 0)); ref.Object == -1 {
		t.Error("a run of 6 KB went inline")
	}
}

func TestAbortFailsAllRuns(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := newMapStore()
	p := NewPacker(t.Context(), s, named(Options{SealAfter: time.Hour}))
	waiting := []*Pending{
		add(t, p.Subtask(), fixed16, fixedEntries(300, 0)),
		add(t, p.Subtask(), fixed16, fixedEntries(20000, 0)),
	}
	streaming := p.Subtask().NewRun(fixed16)
	for _, e := range fixedEntries(20000, 0) {
		if err := streaming.Add(e.Hash, e.Key, nil, e.Value, 0); err != nil {
			t.Fatal(err)
		}
	}
	small := p.Subtask().NewRun(fixed16)
	p.Abort()
	p.Abort()
	for i, r := range waiting {
		if _, _, err := r.WaitDurable(t.Context()); !errors.Is(err, ErrAborted) {
			t.Errorf("run %d: %v", i, err)
		}
	}
	for _, w := range []*RunWriter{streaming, small, p.NewRun(fixed16)} {
		if _, err := w.Finish(); !errors.Is(err, ErrAborted) {
			t.Errorf("Finish: %v", err)
		}
	}
	if err := p.Flush(); !errors.Is(err, ErrAborted) {
		t.Errorf("Flush: %v", err)
	}
	if s.writers() != 0 || s.visible() != 0 {
		t.Errorf("%d writers open, %d objects", s.writers(), s.visible())
	}
}

func TestAbortRaces(t *testing.T) {
	defer goleak.VerifyNone(t)
	for range 30 {
		s := newMapStore()
		o := timed(Options{ObjectBytes: 50 << 10})
		o.SealAfter = 50 * time.Microsecond
		p := NewPacker(t.Context(), s, o)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				h := p.Subtask()
				for n := 0; ; n++ {
					w := h.NewRun(fixed16)
					var err error
					var k [8]byte
					for i := range uint64(300 + 5000*(n%2)) {
						if err = w.Add(i, k[:], nil, k[:], 0); err != nil {
							break
						}
					}
					r, err := w.Finish()
					if err == nil && n%3 == 0 {
						_, _, err = r.WaitDurable(t.Context())
					}
					if err != nil {
						if !errors.Is(err, ErrAborted) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		for s.visible() < 3 {
			runtime.Gosched()
		}
		p.Abort()
		wg.Wait()
		if n := s.writers(); n != 0 {
			t.Fatalf("%d writers left open", n)
		}
	}
}

func TestFailingStoreFailsTheRunsOfTheObject(t *testing.T) {
	broken := errors.New("disk full")
	for _, verb := range []string{"write", "bytes", "commit"} {
		for _, sealAfter := range []time.Duration{0, 50 * time.Millisecond} {
			t.Run(fmt.Sprint(verb, sealAfter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newMapStore()
					o := named(Options{SealAfter: sealAfter})
					p := NewPacker(t.Context(), s, o)
					h := p.Subtask()
					good := add(t, p.Subtask(), fixed16, fixedEntries(20000, 0)) // obj/1
					var first *Pending
					if verb != "write" {
						first = add(t, h, fixed16, fixedEntries(20000, 0)) // obj/2
					}
					s.fail = func(v, name string) error {
						if v == verb && name == "obj/2" {
							return broken
						}
						return nil
					}
					w := h.NewRun(fixed16)
					var err error
					for _, e := range fixedEntries(20000, 0) {
						if err = w.Add(e.Hash, e.Key, nil, e.Value, 0); err != nil {
							break
						}
					}
					second, finish := w.Finish()
					if err != nil && !errors.Is(finish, broken) {
						t.Errorf("Add: %v, then Finish: %v", err, finish)
					}
					if finish == nil {
						_, _, finish = second.WaitDurable(t.Context())
					}
					if !errors.Is(finish, broken) || !strings.Contains(finish.Error(), "obj/2") {
						t.Errorf("second run: %v", finish)
					}
					if first != nil {
						if _, _, err := first.WaitDurable(t.Context()); !errors.Is(err, broken) {
							t.Errorf("first run: %v", err)
						}
					}
					if _, _, err := good.WaitDurable(t.Context()); err != nil {
						t.Errorf("run of another object: %v", err)
					}
					p.Abort()
					if s.writers() != 0 || s.visible() != 1 {
						t.Errorf("%d writers open, %d objects", s.writers(), s.visible())
					}
				})
			})
		}
	}
}

// A run that is given up must not take the others in its object with it.
func TestAbortedRunLeavesTheOthers(t *testing.T) {
	s := newMapStore()
	p := NewPacker(t.Context(), s, named(Options{}))
	entries := fixedEntries(20000, 0)
	a := add(t, p, fixed16, entries)
	w := p.NewRun(fixed16)
	for _, e := range entries[:15000] {
		if err := w.Add(e.Hash, e.Key, nil, e.Value, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Add(0, entries[0].Key, nil, entries[0].Value, 0); err == nil {
		t.Error("descending hash was accepted")
	}
	w.Abort()
	w.Abort()
	b := add(t, p, fixed16, entries)
	refs, objects, err := Collect(t.Context(), a, b)
	if err != nil || len(objects) != 1 {
		t.Fatalf("objects %v, %v", objects, err)
	}
	for _, ref := range refs {
		checkRun(t, s, ref, objects, entries)
		if err := Verify(t.Context(), s, ref, objects); err != nil {
			t.Error(err)
		}
	}
}
