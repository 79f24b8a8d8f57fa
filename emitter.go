package staunch

import "github.com/staunchdev/staunch/internal/operator"

// keepCap is the largest output buffer, in records, that is kept for the next
// slice: one record that became millions does not hold their memory for ever.
const keepCap = 1 << 16

// emitter collects what user code emits to one output in a slice, and hands it
// on once at the slice's end.
type emitter[T any] struct {
	out   operator.Output[T]
	times []int64 // if timed: as long as what was emitted
	timed bool
}

func newEmitter[T any](consumers []any) emitter[T] {
	return emitter[T]{out: operator.NewOutput[T](consumers)}
}

// emit takes v at an event time that the stream may not have.
func (e *emitter[T]) emit(v T, at int64) {
	e.out.Run.Values = append(e.out.Run.Values, v)
	if e.timed {
		e.times = append(e.times, at)
	}
}

// emitAt takes v at an event time. If the stream had none until here, what this
// slice has emitted so far gets none.
func (e *emitter[T]) emitAt(v T, at int64) {
	if !e.timed {
		e.timed = true
		e.times = e.times[:0]
		for range e.out.Run.Values {
			e.times = append(e.times, noTime)
		}
	}
	e.emit(v, at)
}

// emitted is how much was emitted in this slice; cut takes back all above n.
func (e *emitter[T]) emitted() int { return len(e.out.Run.Values) }

func (e *emitter[T]) cut(n int) {
	e.out.Run.Values = e.out.Run.Values[:n]
	if e.timed {
		e.times = e.times[:n]
	}
}

func (e *emitter[T]) flush() error {
	if len(e.out.Run.Values) == 0 {
		return nil
	}
	if e.timed {
		e.out.Run.Times = e.times
	}
	err := e.out.Flush()
	e.out.Run.Times = nil
	e.times = e.times[:0]
	if cap(e.out.Run.Values) > keepCap {
		e.out.Run.Values, e.times = nil, nil
	}
	return err
}
