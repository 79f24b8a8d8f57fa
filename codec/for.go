package codec

import (
	"reflect"
	"unsafe"

	"github.com/staunchdev/staunch/internal/flat"
)

// For returns the codec that state and edges use for T: the flat encoding if T
// is flat, else CBOR. The codec of a type that Check refuses fails at each call
// with Check's error.
func For[T any]() Codec[T] {
	l, err := flat.Of(reflect.TypeFor[T]())
	if err != nil {
		return CBOR[T]()
	}
	return &flatCodec[T]{layout: l, schema: flatSchema(l)}
}

// flatCodec encodes from memory, without reflection or allocation.
type flatCodec[T any] struct {
	layout *flat.Layout
	schema Schema
}

func (c *flatCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	return c.layout.Append(dst, unsafe.Pointer(&v)), nil
}

func (c *flatCodec[T]) Decode(b []byte) (T, error) {
	var v T
	if err := c.layout.Decode(b, unsafe.Pointer(&v)); err != nil {
		return *new(T), err
	}
	return v, nil
}

func (c *flatCodec[T]) Schema() Schema { return c.schema }

func flatSchema(l *flat.Layout) Schema {
	s := Schema{Format: formatFlat}
	for _, f := range l.Fields {
		s.Fields = append(s.Fields, Field{Name: f.Path, Type: f.Type})
	}
	s.Fingerprint = fingerprint(s.Format, s.Fields)
	return s
}
