package operator

import (
	"fmt"

	"github.com/staunchdev/staunch/internal/element"
)

// entry is an input port with its type erased.
type entry[T any] struct {
	in   Input[T]
	part element.Run[T] // a part of the batch in hand
}

// NewEntry erases the type of an input port.
func NewEntry[T any](in Input[T]) Entry { return &entry[T]{in: in} }

func (e *entry[T]) Input() any              { return e.in }
func (e *entry[T]) Watermark(t int64) error { return e.in.Watermark(t) }

func (e *entry[T]) Run(b element.Batch, from, to int) error {
	r, ok := b.(*element.Run[T])
	if !ok {
		panic(fmt.Sprintf("operator: an input of %T was given a batch of %T", e.part.Values, b))
	}
	if from == 0 && to == len(r.Values) {
		return e.in.Process(r)
	}
	e.part.Values = r.Values[from:to:to]
	e.part.Times, e.part.Hashes = nil, nil
	if r.Times != nil {
		e.part.Times = r.Times[from:to:to]
	}
	if r.Hashes != nil {
		e.part.Hashes = r.Hashes[from:to:to]
	}
	err := e.in.Process(&e.part)
	e.part.Values, e.part.Times, e.part.Hashes = nil, nil, nil // the batch is recycled behind our back
	return err
}
