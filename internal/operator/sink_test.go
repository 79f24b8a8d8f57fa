package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
)

// slowWriter takes some time a record, on the rig's clock.
type slowWriter struct {
	rig    *rig
	each   int64
	sizes  []int
	values []int
	calls  []string
	fail   error
}

func (w *slowWriter) Write(_ context.Context, b connector.Batch[int]) error {
	w.rig.now += w.each * int64(len(b.Values))
	w.sizes = append(w.sizes, len(b.Values))
	w.values = append(w.values, b.Values...)
	w.calls = append(w.calls, "write")
	return w.fail
}

func (w *slowWriter) Prepare(context.Context, connector.CheckpointID) ([]connector.Committable, error) {
	w.calls = append(w.calls, "prepare")
	return []connector.Committable{{ID: "c"}}, w.fail
}

func (w *slowWriter) Close() error { return nil }

func newSink(t *testing.T, each int64) (*sink[int], *slowWriter, *rig) {
	r := newRig(t, checkpoint.ExactlyOnce)
	w := &slowWriter{rig: r, each: each}
	made := NewSink(SinkConfig[int]{Name: "out", Writer: func(context.Context, connector.Instance) (connector.Writer[int], error) { return w, nil }})
	s := made.Op.(*sink[int])
	if err := s.Open(r.rt); err != nil {
		t.Fatal(err)
	}
	r.run()
	return s, w, r
}

func (s *sink[T]) give(vs ...T) { _ = s.Process(&element.Run[T]{Values: vs}) }

func TestSinkFillsOneBufferWhileTheOtherIsWritten(t *testing.T) {
	s, w, r := newSink(t, 0)
	s.give(1)
	if s.give(2); s.Full() {
		t.Fatal("full with one record in a buffer")
	}
	s.give(make([]int, writeFirst)...)
	if !s.Full() {
		t.Fatal("both buffers are in use")
	}
	if len(r.work) != 1 {
		t.Fatalf("%d calls of the writer at once", len(r.work))
	}
	r.run()
	if s.Full() || len(r.work) != 1 {
		t.Fatalf("full %v, %d calls", s.Full(), len(r.work))
	}
	r.runAll()
	if len(w.values) != writeFirst+2 || w.values[0] != 1 || w.values[1] != 2 {
		t.Errorf("%d records written", len(w.values))
	}
}

func TestSinkAdaptsItsBatchesToTheWriter(t *testing.T) {
	for _, tt := range []struct {
		each     time.Duration
		min, max int
	}{{time.Millisecond, 5, 10}, {10 * time.Microsecond, 500, 1000}, {0, writeMax, writeMax}, {time.Second, 1, 1}} {
		s, w, r := newSink(t, int64(tt.each))
		for range 40 {
			for !s.Full() {
				s.give(make([]int, 1024)...)
			}
			r.run()
		}
		// The last write of a buffer may be what is left of it.
		if s.size < tt.min || s.size > tt.max {
			t.Errorf("%v a record: batches of %d, want %d to %d; first %v", tt.each, s.size, tt.min, tt.max, w.sizes[:4])
		}
	}
}

func TestPrepareComesAfterAllWrites(t *testing.T) {
	s, w, r := newSink(t, 0)
	s.give(1)
	s.give(2)
	var done []error
	s.Prepare(checkpoint.Barrier{ID: 7}, func(err error) { done = append(done, err) })
	if len(r.work) != 1 {
		t.Fatalf("%d calls at once", len(r.work))
	}
	r.runAll()
	if diff := cmp.Diff([]string{"write", "write", "prepare"}, w.calls); diff != "" {
		t.Error(diff)
	}
	if len(done) != 1 || done[0] != nil {
		t.Errorf("done: %v", done)
	}
}

func TestPrepareErrorGoesToTheCheckpointAndWriteErrorToTheAttempt(t *testing.T) {
	s, w, r := newSink(t, 0)
	w.fail = errors.New("gone")
	var got error
	s.Prepare(checkpoint.Barrier{ID: 7}, func(err error) { got = err })
	r.runAll()
	if got == nil || got.Error() != `sink "out": prepare checkpoint 7: gone` {
		t.Errorf("prepare: %v", got)
	}
	s.give(1)
	r.runAll()
	if len(r.failed) != 1 || r.failed[0].Error() != `sink "out": write: gone` {
		t.Errorf("failed: %v", r.failed)
	}
}

func TestSinkCountsOverTheLifeOfTheJob(t *testing.T) {
	r := newRig(t, checkpoint.ExactlyOnce)
	r.rt.Restore = &Restore{Op: checkpoint.OperatorManifest{Records: 100}}
	w := &slowWriter{rig: r}
	s := NewSink(SinkConfig[int]{Name: "out", Writer: func(context.Context, connector.Instance) (connector.Writer[int], error) { return w, nil }}).Op.(*sink[int])
	s.Open(r.rt)
	r.runAll()
	s.give(1, 2, 3)
	snap, _ := s.Snapshot(checkpoint.Barrier{ID: 1})
	ack, err := snap.Write(t.Context(), nil)
	if err != nil || ack.Records != 103 {
		t.Errorf("%d records, %v", ack.Records, err)
	}
}
