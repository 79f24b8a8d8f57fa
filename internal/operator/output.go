package operator

import (
	"fmt"

	"github.com/staunchdev/staunch/internal/element"
)

// Output is an output port of an operator: a run that the operator fills and
// that Flush hands to every consumer, once a slice.
type Output[T any] struct {
	// Run is what was emitted since the last Flush. The columns Times and Hashes
	// are the operator's to keep: nil, or as long as Values.
	Run  element.Run[T]
	outs []Input[T]
}

// NewOutput returns a port with the given consumers, each an Input[T].
func NewOutput[T any](consumers []any) Output[T] {
	o := Output[T]{outs: make([]Input[T], len(consumers))}
	for i, c := range consumers {
		in, ok := c.(Input[T])
		if !ok {
			var none Input[T]
			panic(fmt.Sprintf("operator: consumer of an output is a %T, not a %T", c, &none))
		}
		o.outs[i] = in
	}
	return o
}

// Used says whether anybody consumes the output.
func (o *Output[T]) Used() bool { return len(o.outs) > 0 }

// Emit appends a record of a stream without event time.
func (o *Output[T]) Emit(v T) { o.Run.Values = append(o.Run.Values, v) }

// EmitAt appends a record with its event time, in Unix nanoseconds.
func (o *Output[T]) EmitAt(v T, t int64) {
	o.Run.Values = append(o.Run.Values, v)
	o.Run.Times = append(o.Run.Times, t)
}

// Flush hands the run on and empties it.
func (o *Output[T]) Flush() error {
	if len(o.Run.Values) == 0 {
		return nil
	}
	err := o.send(&o.Run)
	o.Run.Reset(false) // its memory is written over by the next slice
	return err
}

// send hands on a run that is not the port's own.
func (o *Output[T]) send(r *element.Run[T]) error {
	for _, in := range o.outs {
		if err := in.Process(r); err != nil {
			return err
		}
	}
	return nil
}

// Watermark hands a watermark on.
func (o *Output[T]) Watermark(t int64) error {
	for _, in := range o.outs {
		if err := in.Watermark(t); err != nil {
			return err
		}
	}
	return nil
}
