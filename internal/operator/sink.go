package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
)

// SinkConfig configures one subtask of a sink.
type SinkConfig[T any] struct {
	Name   string
	Writer func(ctx context.Context, i connector.Instance) (connector.Writer[T], error)
	Target time.Duration // how long a Write should take; 0: 10 ms
}

const (
	writeTarget = 10 * time.Millisecond
	writeFirst  = 1024    // records in the first batch
	writeMax    = 1 << 16 // and at most
)

// sink hands records to a writer in batches. There are two buffers: one is
// filled while the other one is written, so batches grow while a Write is
// under way, and a record waits for no timer.
//
// A committable stays in the sink, and in each of its snapshots, until
// Committed covers the checkpoint it was prepared at. Abort does nothing: what
// was written before barrier id is before barrier id+1 too.
type sink[T any] struct {
	Base
	cfg    SinkConfig[T]
	rt     *Runtime
	writer connector.Writer[T] // written by the work that Open starts
	ready  bool

	filling, writing connector.Batch[T]
	busy             bool // a call of the writer is under way
	size             int  // records in a batch
	prepare          *preparation
	unconfirmed      []checkpoint.Committable
	total            int64 // taken over the life of the job
	records          *Counter
}

// preparation is a Prepare that waits for its turn, or is under way.
type preparation struct {
	id   checkpoint.ID
	done func(error)
}

// NewSink returns a sink.
func NewSink[T any](cfg SinkConfig[T]) Made {
	if cfg.Target <= 0 {
		cfg.Target = writeTarget
	}
	s := &sink[T]{cfg: cfg, size: writeFirst}
	return Made{Op: s, Entries: []Entry{NewEntry[T](s)}}
}

func (s *sink[T]) Open(rt *Runtime) error {
	s.rt = rt
	s.records, s.total = rt.counter("records"), rt.restoredRecords()
	var err error
	rt.Exec(func(ctx context.Context) {
		s.writer, err = s.cfg.Writer(ctx, rt.Instance)
	}, func() {
		if err != nil {
			rt.Fail(fmt.Errorf("sink %q: open writer: %w", s.cfg.Name, err))
			return
		}
		s.ready = true
		s.next()
	})
	return nil
}

func (s *sink[T]) Process(r *element.Run[T]) error {
	s.filling.Values = append(s.filling.Values, r.Values...)
	if r.Times != nil {
		s.filling.Times = append(s.filling.Times, r.Times...)
	}
	s.total += int64(len(r.Values))
	s.records.Add(int64(len(r.Values)))
	s.next()
	return nil
}

func (s *sink[T]) Watermark(int64) error { return nil }

// Full implements Throttle: both buffers are in use.
func (s *sink[T]) Full() bool { return s.busy && len(s.filling.Values) >= s.size }

// next starts the next call of the writer, unless one is under way.
func (s *sink[T]) next() {
	switch {
	case !s.ready || s.busy:
	case len(s.filling.Values) > 0:
		s.write()
	case s.prepare != nil:
		s.prepareNow()
	}
}

func (s *sink[T]) write() {
	s.filling, s.writing = s.writing, s.filling
	s.busy = true
	var err error
	size := s.size
	s.rt.Exec(func(ctx context.Context) {
		size, err = s.writeAll(ctx, size)
	}, func() {
		s.busy = false
		if err != nil {
			s.rt.Fail(fmt.Errorf("sink %q: write: %w", s.cfg.Name, err))
			return
		}
		s.size = size
		s.next()
	})
}

// writeAll writes the buffer in batches, and returns what the size of a batch
// should be so that a Write takes as long as it should.
func (s *sink[T]) writeAll(ctx context.Context, size int) (int, error) {
	b := s.writing
	for from := 0; from < len(b.Values); {
		to := min(from+size, len(b.Values))
		part := connector.Batch[T]{Values: b.Values[from:to:to]}
		if len(b.Times) == len(b.Values) {
			part.Times = b.Times[from:to:to]
		}
		began := s.rt.Now()
		if err := s.writer.Write(ctx, part); err != nil {
			return size, err
		}
		size = s.adapt(size, to-from, s.rt.Now()-began)
		from = to
	}
	clear(s.writing.Values) // keep no record alive
	s.writing.Values = s.writing.Values[:0]
	if s.writing.Times != nil {
		s.writing.Times = s.writing.Times[:0]
	}
	return size, nil
}

// adapt halves the size of a batch where a Write takes too long, and doubles it
// where a full batch took less than half as long as it may.
func (s *sink[T]) adapt(size, wrote int, took int64) int {
	target := int64(s.cfg.Target)
	switch {
	case took > target:
		// What was written says more than the size, which it may not have reached.
		return max(int(int64(wrote)*target/took), size/2, 1)
	case wrote == size && took < target/2:
		return min(2*size, writeMax)
	}
	return size
}

// Prepare implements Preparer. No record is processed until done is called, so
// all that is written before are the records before the barrier.
func (s *sink[T]) Prepare(b checkpoint.Barrier, done func(error)) {
	if s.prepare != nil {
		panic(fmt.Sprintf("operator: sink %q is asked to prepare checkpoint %d while it prepares %d", s.cfg.Name, b.ID, s.prepare.id))
	}
	s.prepare = &preparation{b.ID, done}
	s.next()
}

func (s *sink[T]) prepareNow() {
	p := s.prepare
	s.busy = true
	var cs []connector.Committable
	var err error
	s.rt.Exec(func(ctx context.Context) {
		cs, err = s.writer.Prepare(ctx, connector.CheckpointID(p.id))
	}, func() {
		s.busy, s.prepare = false, nil
		if err != nil {
			p.done(fmt.Errorf("sink %q: prepare checkpoint %d: %w", s.cfg.Name, p.id, err))
			return
		}
		for _, c := range cs {
			s.unconfirmed = append(s.unconfirmed, checkpoint.Committable{
				ID: c.ID, Prepared: p.id, Subtask: s.rt.Instance.Subtask, Data: c.Data,
			})
		}
		p.done(nil)
	})
}

// Snapshot implements Operator.
func (s *sink[T]) Snapshot(checkpoint.Barrier) (Snapshot, error) {
	cs := make([]checkpoint.Committable, len(s.unconfirmed))
	copy(cs, s.unconfirmed)
	return &ackSnapshot{ack: checkpoint.OperatorAck{Operator: s.cfg.Name, Committables: cs, Records: s.total}}, nil
}

// Committed implements Operator.
func (s *sink[T]) Committed(id checkpoint.ID) error {
	kept := s.unconfirmed[:0]
	for _, c := range s.unconfirmed {
		if c.Prepared > id {
			kept = append(kept, c)
		}
	}
	clear(s.unconfirmed[len(kept):])
	s.unconfirmed = kept
	return nil
}

// Close implements Operator. It is the writer's last call, so nothing waits for
// this goroutine any more and it may block.
func (s *sink[T]) Close() error {
	if s.writer == nil {
		return nil
	}
	if err := s.writer.Close(); err != nil {
		return fmt.Errorf("sink %q: close writer: %w", s.cfg.Name, err)
	}
	return nil
}
