package staunch

import (
	"context"
	"io"
	"strconv"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
)

// From reads a source.
func From[T any](j *Job, name string, src connector.Source[T], opts ...Option) Stream[T] {
	n := j.identity("source", name, opts)
	n.Source = &graph.SourceInfo{}
	checkDeadLetter[[]byte](j, n)
	if isNil(src) {
		j.fault("%s is nil", n.label)
		return mainPort[T](j, n)
	}
	spec := src.Spec()
	*n.Source = graph.SourceInfo{Replayable: spec.Replayable, Bounded: spec.Bounded, System: spec.System, Why: spec.Why}
	n.enumerator = src.Enumerator
	n.make = func(name string, outs [][]any) operator.Made {
		cfg := operator.SourceConfig[T]{Name: name, Reader: src.Reader, Outs: outs[0], Rate: n.cfg.rate}
		if cfg.Rate == 0 {
			cfg.Rate = j.rate
		}
		if n.cfg.dead != nil {
			dead := newEmitter[Failed[[]byte]](outs[1]) // a source has no other side
			cfg.Bad = func(b connector.Bad) error {
				dead.emit(Failed[[]byte]{Value: b.Raw, Err: b.Err.Error(), From: b.From}, noTime)
				return dead.flush()
			}
		}
		return operator.NewSource(cfg)
	}
	return mainPort[T](j, n)
}

// FromSlice reads vs; for tests and examples.
func FromSlice[T any](j *Job, name string, vs []T, opts ...Option) Stream[T] {
	return From(j, name, connector.Source[T](slice[T](vs)), opts...)
}

// slice is a source of one split whose offset is the index.
type slice[T any] []T

func (s slice[T]) Spec() connector.SourceSpec {
	return connector.SourceSpec{Replayable: true, Bounded: true, System: strconv.Itoa(len(s)) + " records in memory"}
}

func (s slice[T]) Enumerator(context.Context, connector.Instance) (connector.Enumerator, error) {
	return new(sliceEnumerator), nil
}

func (s slice[T]) Reader(context.Context, connector.Instance) (connector.Reader[T], error) {
	return &sliceReader[T]{vs: s}, nil
}

// sliceEnumerator finds the one split, once in the life of a job.
type sliceEnumerator struct{ found bool }

func (e *sliceEnumerator) Discover(context.Context) ([]connector.Split, bool, error) {
	if e.found {
		return nil, false, nil
	}
	e.found = true
	return []connector.Split{{ID: "slice"}}, false, nil
}

func (e *sliceEnumerator) Snapshot() ([]byte, error) { return []byte{'+'}, nil }
func (e *sliceEnumerator) Restore(b []byte) error    { e.found = len(b) > 0; return nil }
func (e *sliceEnumerator) Close() error              { return nil }

type sliceReader[T any] struct {
	vs    []T
	split *connector.Split // nil: not this subtask's, or done
}

func (r *sliceReader[T]) Add(s connector.Split) error {
	r.split = &s
	return nil
}

func (r *sliceReader[T]) Poll(b *connector.Batch[T], max int) (string, connector.Offset, error) {
	s := r.split
	if s == nil {
		return "", connector.Offset{}, connector.ErrEmpty
	}
	from := min(int(s.Next.N), len(r.vs))
	to := min(from+max, len(r.vs))
	b.Values = append(b.Values, r.vs[from:to]...)
	s.Next.N = int64(to)
	if to == len(r.vs) {
		r.split = nil
		return s.ID, s.Next, io.EOF
	}
	return s.ID, s.Next, nil
}

// Available is never ready: what is not there at once never comes.
func (r *sliceReader[T]) Available() <-chan struct{} { return nil }

func (r *sliceReader[T]) Close() error { return nil }
