package staunch_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/state"
	"github.com/staunchdev/staunch/storage/memstore"
)

// brittle is a codec whose Decode fails once, at one value.
type brittle struct{ at *atomic.Int64 }

// page is a value that is kept encoded.
type page struct {
	N    int64
	Text []byte
}

func (f brittle) Append(dst []byte, p page) ([]byte, error) {
	return append(binary.LittleEndian.AppendUint64(dst, uint64(p.N)), p.Text...), nil
}

var errDecode = errors.New("input/output error")

func (f brittle) Decode(b []byte) (page, error) {
	p := page{N: int64(binary.LittleEndian.Uint64(b)), Text: append([]byte(nil), b[8:]...)}
	if f.at.CompareAndSwap(p.N, -1) {
		return page{}, errDecode
	}
	return p, nil
}

func (f brittle) Schema() codec.Schema { return codec.Schema{Format: "brittle"} }

// library keeps pages by number: a positive record adds one, 0 counts them.
type library struct {
	pages  state.Map[int64, page]
	counts chan int
}

func (l *library) Process(c *staunch.Ctx[int], _ int, v int) error {
	if v > 0 {
		l.pages.Set(int64(v), page{int64(v), make([]byte, 200)})
		return nil
	}
	n := 0
	for range l.pages.All() {
		n++
	}
	l.counts <- n // what user code would go on with
	return nil
}

// An error in the middle of a scan, by user code or by a snapshot, or of a
// restore, is never the end of the data: the subtask or the checkpoint fails
// with that error, and nothing with fewer entries is seen or kept.
//
// Red: an iteration ended at the value that could not be decoded; a snapshot
// took an error of the store for its end.
func TestCase_C05(t *testing.T) {
	const pages = 1000
	synctest.Test(t, func(t *testing.T) {
		var at atomic.Int64
		at.Store(-1)
		counts := make(chan int, 10)
		src := casekit.NewSource(1, func(_ int, off int64) int {
			if off < pages {
				return int(off) + 1
			}
			return 0
		})
		store, said := casekit.NewStore(), &casekit.Recorder{}
		j := staunch.NewJob("library")
		k := staunch.KeyBy(staunch.From(j, "in", src), func(int) int { return 1 })
		out := staunch.Process(k, "library", func(s *staunch.Setup) *library {
			return &library{state.NewMap[int64, page](s, "pages", state.Codec[page](brittle{&at})), counts}
		})
		staunch.To(out, "out", casekit.NewTxLog[int]())
		x, err := staunch.StartWith(t.Context(), j, quiet(staunch.Options{
			Parallelism: 1, Restart: staunch.FixedDelay(5, time.Millisecond), Checkpoint: staunch.CheckpointOptions{Interval: -1},
		}), func(_ *cluster.Job, o *cluster.Options) { o.Store, o.OnEvent = store.Open(), said.On })
		if err != nil {
			t.Fatal(err)
		}
		restarts := func() []cluster.Restarting { return casekit.All[cluster.Restarting](said) }
		src.Grow(0, pages)
		synctest.Wait()
		first, err := x.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		// A scan of user code.
		at.Store(401)
		src.Grow(0, 1)
		synctest.Wait()
		time.Sleep(time.Second) // of the bubble: the restart's delay
		synctest.Wait()
		if rs := restarts(); len(rs) != 1 || !errors.Is(rs[0].Cause, errDecode) {
			t.Fatalf("restarts %+v", rs)
		} else if text := rs[0].Cause.Error(); !strings.Contains(text, `operator "library"`) || !strings.Contains(text, `"pages"`) {
			t.Errorf("the cause names neither operator nor state: %v", text)
		}
		if n := len(counts); n != 1 {
			t.Fatalf("user code counted %d times", n)
		}
		if n := <-counts; n != pages {
			t.Errorf("user code counted %d pages of %d", n, pages)
		}

		// A scan of a snapshot: the store fails in the middle of its object.
		errIO, blocks := errors.New("the device is on fire"), 0
		store.Rule(func(op memstore.Op) memstore.Outcome {
			if op.Verb == memstore.Append && strings.HasPrefix(op.Name, checkpoint.ObjectPrefix) {
				if blocks++; blocks == 2 {
					return memstore.Outcome{Fate: memstore.Refuse, Err: errIO}
				}
			}
			return memstore.Outcome{}
		})
		id, err := x.Checkpoint(t.Context())
		if err == nil || !strings.Contains(err.Error(), errIO.Error()) {
			t.Errorf("checkpoint %d of half the state: %v", id, err)
		}
		store.Rule(nil)
		synctest.Wait()
		last, err := x.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		view, err := ckptlog.Read(t.Context(), store.Open())
		if err != nil {
			t.Fatal(err)
		}
		kept := fmt.Sprint()
		for _, r := range view.Retained() {
			m, err := cluster.ReadManifest(t.Context(), store.Open(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, op := range m.Operators {
				for _, s := range op.States {
					kept += fmt.Sprintf("%d: %d entries; ", r.ID, s.Entries)
				}
			}
		}
		if want := fmt.Sprintf("%d: %d entries; %d: %d entries; ", first, pages, last, pages); kept != want {
			t.Errorf("kept %s want %s", kept, want)
		}

		// A restore whose reads come short, the first time.
		short := 0
		store.Rule(func(op memstore.Op) memstore.Outcome {
			if op.Verb == memstore.ReadAt && strings.HasPrefix(op.Name, checkpoint.ObjectPrefix) && short == 0 {
				short++
				return memstore.Outcome{Fate: memstore.Truncate, Keep: 100}
			}
			return memstore.Outcome{}
		})
		at.Store(7)
		src.Grow(0, 1)
		synctest.Wait()
		time.Sleep(time.Second) // of the bubble
		synctest.Wait()
		if rs := restarts(); len(rs) > 1 && short == 1 {
			// Tried again, or given up: in no case gone on with less.
			select {
			case n := <-counts:
				if n != pages {
					t.Errorf("after a short read: %d pages of %d", n, pages)
				}
			default:
				if _, err := ended(t, x); err == nil || !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "expected") {
					t.Errorf("after a short read: %v", err)
				}
			}
		} else {
			t.Errorf("%d restarts, %d short reads", len(rs), short)
		}
	})
}

// The whole engine under the race detector, with everyone at the state at once:
// a writer at full speed, snapshots every few milliseconds, a reader of the
// numbers, and user code that iterates over a map and deletes while it does.
//
// Red: a page that a snapshot still read was written in place.
func TestCase_C04_Job(t *testing.T) {
	// It runs until so many checkpoints are complete, however long that takes.
	keys, enough := 20_000, 20
	if testing.Short() {
		enough = 3
	}
	src := casekit.NewSource(2, func(split int, off int64) int { return (int(off)*2 + split) % keys })
	src.Grow(0, 1<<40)
	src.Grow(1, 1<<40)
	j := staunch.NewJob("busy")
	k := staunch.KeyBy(staunch.From(j, "in", src), func(v int) int { return v % 100 })
	var wrong atomic.Int64
	out := staunch.Process(k, "op", func(s *staunch.Setup) staunch.ProcessFunc[int, int, int] {
		m, n := state.NewMap[int, int64](s, "m"), state.NewValue[int64](s, "n")
		return func(c *staunch.Ctx[int], _ int, v int) error {
			m.Set(v, m.Get(v)+1)
			n.Set(n.Get() + 1)
			if n.Get()%1000 == 0 {
				was, seen, deleted := m.Len(), 0, 0
				for v := range m.All() {
					if seen++; v%3 == 0 {
						m.Delete(v)
						deleted++
					}
				}
				if seen != was || m.Len() != was-deleted {
					wrong.Add(1)
				}
			}
			return nil
		}
	})
	staunch.To(out, "out", casekit.NewTxLog[int]())
	said := &casekit.Recorder{}
	x, err := staunch.StartWith(t.Context(), j, quiet(staunch.Options{
		Parallelism: 2, Restart: staunch.NoRestart(), Checkpoint: staunch.CheckpointOptions{Interval: 20 * time.Millisecond},
	}), func(_ *cluster.Job, o *cluster.Options) { o.OnEvent = said.On })
	if err != nil {
		t.Fatal(err)
	}
	var reads int
	tick, deadline := time.NewTicker(5*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for len(said.Completed()) < enough {
		select {
		case <-tick.C:
			x.Metrics()
			reads++
		case <-x.Done():
			_, err := x.Wait()
			t.Fatal(err)
		case <-deadline:
			t.Fatalf("%d checkpoints in a minute", len(said.Completed()))
		}
	}
	n := len(said.Completed())
	t.Logf("%d records, %d checkpoints, %d readings", src.Polled(0)+src.Polled(1), n, reads)
	if wrong.Load() > 0 {
		t.Errorf("%d iterations went wrong", wrong.Load())
	}
}
