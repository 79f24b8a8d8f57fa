package staunch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage/memstore"
)

// ending is a job on its last steps: one checkpoint has been committed, and the
// source is about to end with nothing behind it, so that the final checkpoint
// names no committables.
type ending struct {
	*caseRun
	store *casekit.Store
	src   *casekit.Source[int]
	out   *casekit.TxLog[int]
}

func startEnding(t *testing.T) *ending {
	t.Helper()
	e := &ending{store: casekit.NewStore(), src: casekit.NewSource(1, offsets), out: casekit.NewTxLog[int]()}
	e.src.Grow(0, 10)
	e.again(t)
	synctest.Wait()
	e.checkpoint()
	return e
}

// again starts the job once more on its store.
func (e *ending) again(t *testing.T) {
	t.Helper()
	j := staunch.NewJob("ending")
	staunch.To(staunch.From(j, "in", e.src), "out", e.out)
	o := onDemand()
	o.Checkpoint.Retain = 1
	e.caseRun = start(t, e.store, j, o, nil)
}

// hang lets no call that matches return, from the n-th on.
func (e *ending) hang(t *testing.T, verb memstore.Verb, prefix string, n int64) {
	t.Helper()
	var gate casekit.Gate
	gate.Close()
	t.Cleanup(gate.Open)
	var calls atomic.Int64
	e.store.Rule(func(op memstore.Op) memstore.Outcome {
		if op.Verb == verb && strings.HasPrefix(op.Name, prefix) && calls.Add(1) >= n {
			gate.Pass()
		}
		return memstore.Outcome{}
	})
}

// All output is committed and the log says so; what the store does not answer is
// only how the last checkpoint's predecessor is disposed of.
func TestASucceededJobEndsThoughTheStoreHangs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		verb   memstore.Verb
		prefix string
		n      int64
	}{
		{"dispose record", memstore.Create, "log/", 2}, // behind the final checkpoint
		{"delete", memstore.Delete, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startEnding(t)
				e.hang(t, tt.verb, tt.prefix, tt.n)
				e.src.End()
				if _, err := e.end(time.Minute); err != nil {
					t.Errorf("the run ended with %v", err)
				}
				if n := len(e.lines.With("everything is committed")); n != 1 {
					t.Errorf("%d lines say what is known", n)
				}
				if got := len(e.out.Visible()); got != 10 {
					t.Errorf("%d records, want 10", got)
				}
				e.store.Rule(nil)
				e.again(t)
				if _, err := e.end(time.Minute); err != nil {
					t.Errorf("the next start: %v", err)
				}
				if v, err := e.store.View(); err != nil || len(v.Uncommitted()) > 0 {
					t.Errorf("not committed: %v, %v", v.Uncommitted(), err)
				}
				if got := len(e.out.Visible()); got != 10 {
					t.Errorf("%d records after the next start, want 10", got)
				}
			})
		})
	}
}

func TestAStopEndsTheWaitForTheStoreAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		verb   memstore.Verb
		prefix string
		n      int64
	}{
		{"dispose record", memstore.Create, "log/", 2},
		{"delete", memstore.Delete, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startEnding(t)
				e.hang(t, tt.verb, tt.prefix, tt.n)
				e.src.End()
				wait(time.Second)
				if e.ended() {
					t.Fatal("the run has ended: the store did not hang")
				}
				begun := time.Now()
				if _, err := e.stop(); err != nil || time.Since(begun) > 0 {
					t.Errorf("stopped with %v after %v, want at once", err, time.Since(begun))
				}
			})
		})
	}
}

// A stop while it is undecided whether a checkpoint is in the log waits for the
// cancel deadline and no longer; the next start finds out.
func TestAStopDoesNotWaitForAnUndecidedAppend(t *testing.T) {
	for _, failed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := startEnding(t)
			e.hang(t, memstore.Create, "log/", 1)
			e.src.Grow(0, 5)
			synctest.Wait()
			e.ask()
			if failed { // the attempt has ended before, and waits for the outcome
				wait(time.Hour)
			}
			e.kill()
			if _, err := e.end(2 * time.Minute); err != nil {
				t.Errorf("the run ended with %v", err)
			}
			if n := len(e.lines.With("the next start finds out")); n != 1 {
				t.Errorf("%d lines say what is known", n)
			}
			e.store.Rule(nil)
			e.src.End()
			e.again(t)
			if _, err := e.end(time.Minute); err != nil {
				t.Errorf("the next start: %v", err)
			}
			if got := len(e.out.Visible()); got != 15 {
				t.Errorf("%d records, want 15", got)
			}
		})
	}
}

// A restored checkpoint whose Committed record the store refuses for a while
// must not be overtaken by the end of the job: exit 0 means that everything is
// committed and that the log says so.
func TestTheEndWaitsForTheCommittedRecordOfTheRestoredCheckpoint(t *testing.T) {
	refuse := func(e *ending, when func(n int64) bool) {
		var calls atomic.Int64
		e.store.Rule(func(op memstore.Op) memstore.Outcome {
			if op.Verb == memstore.Create && strings.HasPrefix(op.Name, "log/") && when(calls.Add(1)) {
				return memstore.Outcome{Fate: memstore.Refuse}
			}
			return memstore.Outcome{}
		})
	}
	for _, crash := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := startEnding(t)
			e.src.Grow(0, 5)
			synctest.Wait()
			refuse(e, func(n int64) bool { return n > 1 }) // all behind the checkpoint
			e.checkpoint()
			e.stop()
			e.src.End()
			// Slot by slot: the takeover, Committed, the final checkpoint, Committed.
			refuse(e, func(n int64) bool { return n == 2 || crash && n > 3 })
			e.again(t)
			if crash {
				wait(time.Minute)
				e.stop()
				e.store.Rule(nil)
				e.again(t)
			}
			if _, err := e.end(time.Minute); err != nil {
				t.Fatal(err)
			}
			v, err := e.store.View()
			if err != nil || len(v.Uncommitted()) > 0 {
				t.Errorf("crash %v: the job has ended, but not committed are %+v, %v", crash, v.Uncommitted(), err)
			}
			if latest, ok := v.Latest(); !ok || latest.Committables {
				t.Errorf("the final checkpoint is %+v", latest)
			}
			if got := len(e.out.Visible()); got != 15 {
				t.Errorf("%d records, want 15", got)
			}
		})
	}
}

// moody fails its first snapshots.
type moody struct {
	*casekit.Source[int]
	failing atomic.Int64
}

func (m *moody) Enumerator(ctx context.Context, i connector.Instance) (connector.Enumerator, error) {
	e, err := m.Source.Enumerator(ctx, i)
	return &moodyEnumerator{e, m}, err
}

type moodyEnumerator struct {
	connector.Enumerator
	m *moody
}

func (e *moodyEnumerator) Snapshot() ([]byte, error) {
	if e.m.failing.Add(-1) >= 0 {
		return nil, errors.New("not now")
	}
	return e.Enumerator.Snapshot()
}

// A final checkpoint is tried again after a pause, whatever it failed of.
func TestAFailedFinalCheckpointPauses(t *testing.T) {
	const failures = 5
	for _, tt := range []struct {
		name string
		fail func(*moody, *casekit.Store)
	}{
		{"enumerator", func(m *moody, _ *casekit.Store) { m.failing.Store(failures) }},
		{"append", func(_ *moody, s *casekit.Store) {
			var calls atomic.Int64
			s.Rule(func(op memstore.Op) memstore.Outcome {
				if op.Verb == memstore.Create && strings.HasPrefix(op.Name, "log/") && calls.Add(1) <= failures {
					return memstore.Outcome{Fate: memstore.Refuse}
				}
				return memstore.Outcome{}
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, m := casekit.NewStore(), &moody{Source: casekit.NewSource(1, offsets)}
				j := staunch.NewJob("ending")
				staunch.To(staunch.From(j, "in", m), "out", casekit.NewTxLog[int]())
				r := start(t, store, j, onDemand(), nil)
				tt.fail(m, store)
				begun := time.Now()
				m.End()
				if _, err := r.end(time.Minute); err != nil {
					t.Fatal(err)
				}
				if n := len(casekit.All[cluster.CheckpointFailed](r.Recorder)); n != failures {
					t.Errorf("%d failed, want %d", n, failures)
				}
				if took := time.Since(begun); took < failures*400*time.Millisecond {
					t.Errorf("%d failures in %v", failures, took)
				}
			})
		})
	}
}
