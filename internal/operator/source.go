package operator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
)

// SourceConfig configures one subtask of a source.
type SourceConfig[T any] struct {
	Name   string
	Reader func(ctx context.Context, i connector.Instance) (connector.Reader[T], error)
	Outs   []any // consumers of the records
	Rate   int64 // records a second of all subtasks together; 0: as fast as it goes
	// Bad takes what the reader could not decode; nil: it is an error.
	Bad func(connector.Bad) error
}

// source reads its splits. The position of a split is that of the records
// emitted, so it can be snapshot between any two polls.
type source[T any] struct {
	Base
	cfg    SourceConfig[T]
	rt     *Runtime
	reader connector.Reader[T]
	ready  bool // reader may be used
	out    Output[T]
	rate   rate

	splits []checkpoint.Split // in the order they came; done ones stay
	index  map[string]int     // of splits
	live   int                // splits that the reader is reading
	noMore bool
	early  []checkpoint.Split // came before the reader was made

	polled  poll[T]
	empty   bool // the last poll found nothing: only then Available says when to go on
	held    holding[T]
	total   int64 // emitted over the life of the job
	records *Counter

	emitting *poll[T] // for Where
	observed observer
}

// NewSource returns a source.
func NewSource[T any](cfg SourceConfig[T]) Made {
	return Made{Op: &source[T]{cfg: cfg, out: NewOutput[T](cfg.Outs), index: map[string]int{}}}
}

func (s *source[T]) Open(rt *Runtime) error {
	s.rt = rt
	s.rate = newRate(s.cfg.Rate, rt.Instance.Parallelism)
	s.records, s.total = rt.counter("records"), rt.restoredRecords()
	var err error
	rt.Exec(func(ctx context.Context) {
		s.reader, err = s.cfg.Reader(ctx, rt.Instance)
	}, func() {
		if err != nil {
			rt.Fail(fmt.Errorf("source %q: open reader: %w", s.cfg.Name, err))
			return
		}
		s.ready = true
		s.observed.init(s.cfg.Name, rt, s.reader)
		if err := s.AddSplits(s.early); err != nil {
			rt.Fail(err)
		}
		s.early = nil
	})
	return nil
}

// AddSplits implements Source.
func (s *source[T]) AddSplits(splits []checkpoint.Split) error {
	if !s.ready {
		s.early = append(s.early, splits...)
		return nil
	}
	for _, sp := range splits {
		if _, ok := s.index[sp.ID]; ok {
			return fmt.Errorf("source %q: split %q was handed over twice", s.cfg.Name, sp.ID)
		}
		s.index[sp.ID] = len(s.splits)
		s.splits = append(s.splits, sp)
		if sp.Done {
			continue
		}
		s.live++
		if err := s.reader.Add(readerSplit(sp)); err != nil {
			return fmt.Errorf("source %q: add split %q: %w", s.cfg.Name, sp.ID, err)
		}
	}
	return nil
}

func readerSplit(sp checkpoint.Split) connector.Split {
	c := connector.Split{ID: sp.ID, Next: connector.Offset{N: sp.N, State: sp.State}, Weight: sp.Weight}
	if sp.End != nil {
		c.End = &connector.Offset{N: *sp.End, State: sp.EndState}
	}
	return c
}

// NoMoreSplits implements Source.
func (s *source[T]) NoMoreSplits() { s.noMore = true }

// Available implements Source. It is nil while the source waits for something
// else than its reader: its rate, a reservation, splits.
func (s *source[T]) Available() <-chan struct{} {
	if !s.ready || !s.empty {
		return nil
	}
	return s.reader.Available()
}

// Poll implements Source.
func (s *source[T]) Poll(now int64, max int) (PollResult, error) {
	s.empty = false
	if !s.ready {
		return PollResult{Idle: true}, nil
	}
	if s.rt.Mode == checkpoint.AtMostOnce {
		return s.pollReserved(now, max)
	}
	if s.live == 0 {
		return PollResult{Idle: true, Ended: s.noMore}, nil
	}
	n, when := s.rate.allow(now, max)
	if n == 0 {
		return PollResult{Idle: true, NotBefore: when}, nil
	}
	if ok, err := s.read(&s.polled, n); !ok || err != nil {
		return PollResult{Idle: true}, err
	}
	return PollResult{Records: len(s.polled.batch.Values)}, s.emit(&s.polled)
}

// poll is what a Poll of the reader returned.
type poll[T any] struct {
	batch connector.Batch[T]
	split int // index into splits
	next  connector.Offset
	done  bool // the split has been read to its end
}

// read polls the reader, and says whether it returned anything.
func (s *source[T]) read(p *poll[T], max int) (bool, error) {
	p.batch.Values, p.batch.Bad = p.batch.Values[:0], p.batch.Bad[:0]
	if p.batch.Times != nil {
		p.batch.Times = p.batch.Times[:0]
	}
	id, next, err := s.reader.Poll(&p.batch, max)
	n := len(p.batch.Values) + len(p.batch.Bad)
	switch {
	case err == nil, errors.Is(err, io.EOF):
	case errors.Is(err, connector.ErrEmpty):
		if n == 0 {
			s.empty = true
			return false, nil
		}
	default:
		return false, fmt.Errorf("source %q: read: %w", s.cfg.Name, err)
	}
	i, ok := s.index[id]
	if !ok || s.splits[i].Done {
		return false, fmt.Errorf("source %q: the reader returned %d records of split %q, which it does not have", s.cfg.Name, n, id)
	}
	p.split, p.next, p.done = i, next, errors.Is(err, io.EOF)
	if p.done {
		s.live--
	}
	s.rate.take(n)
	return true, nil
}

// emit sends the records of a poll down the chain. Only then its split has
// moved on.
func (s *source[T]) emit(p *poll[T]) error {
	s.emitting = p
	if s.cfg.Bad == nil && len(p.batch.Bad) > 0 {
		bad := p.batch.Bad[0]
		return fmt.Errorf("source %q: bad record at %s: %w", s.cfg.Name, bad.From, bad.Err)
	}
	if n := len(p.batch.Values); n > 0 {
		r := element.Run[T]{Values: p.batch.Values}
		if len(p.batch.Times) == n {
			r.Times = p.batch.Times
		}
		s.out.Run = r
		s.emitting = nil
		if err := s.out.send(&s.out.Run); err != nil {
			return err
		}
		s.out.Run = element.Run[T]{}
		s.emitting = p
	}
	for _, bad := range p.batch.Bad {
		if err := s.cfg.Bad(bad); err != nil {
			return err
		}
	}
	s.total += int64(len(p.batch.Values))
	s.records.Add(int64(len(p.batch.Values)))
	sp := &s.splits[p.split]
	sp.N, sp.State = p.next.N, p.next.State
	sp.Done = sp.Done || p.done
	s.emitting = nil
	return nil
}

// Where implements Where.
func (s *source[T]) Where() (operator, record string) {
	if s.emitting == nil {
		return s.cfg.Name, ""
	}
	sp := s.splits[s.emitting.split]
	return s.cfg.Name, fmt.Sprintf("split %q from %d", sp.ID, sp.N)
}

// Snapshot implements Operator. It copies one entry a split.
func (s *source[T]) Snapshot(b checkpoint.Barrier) (Snapshot, error) {
	splits := make([]checkpoint.Split, 0, len(s.splits)+len(s.early))
	splits = append(append(splits, s.splits...), s.early...)
	s.observed.remember(b.ID, splits)
	return &ackSnapshot{ack: checkpoint.OperatorAck{Operator: s.cfg.Name, Splits: splits, Records: s.total}}, nil
}

// Abort implements Operator.
func (s *source[T]) Abort(id checkpoint.ID) error {
	s.observed.forget(id)
	return nil
}

// Committed implements Operator.
func (s *source[T]) Committed(id checkpoint.ID) error {
	s.observed.committed(id)
	return nil
}

// Close implements Operator.
func (s *source[T]) Close() error {
	if s.reader == nil {
		return nil
	}
	if err := s.reader.Close(); err != nil {
		return fmt.Errorf("source %q: close reader: %w", s.cfg.Name, err)
	}
	return nil
}
