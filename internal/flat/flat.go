// Package flat describes flat types, and encodes their values straight from
// memory.
//
// A type is flat if it is a bool, a number, a string, or an array or struct of
// flat types, with every field exported. A flat value holds no pointer but
// those of its strings, so a table can keep it at its Go memory layout, and it
// has one canonical encoding, the one below. That encoding is final: it is in
// checkpoints and under the key hash.
//
//	bool                  1 byte, 0 or 1
//	intN, uintN           N/8 bytes, little endian
//	int, uint, uintptr    8 bytes, little endian, whatever the platform
//	floats, complexes     their IEEE 754 bits, little endian, real part first
//	string                uvarint length in its shortest form, then the bytes
//	array, struct         the elements or fields in order, nothing between them
//
// Padding is neither written nor read, and so are blank fields: the memory of
// two equal values may differ there, and must never be compared or hashed.
package flat

import (
	"errors"
	"reflect"
)

// MaxSize bounds the memory of one value.
const MaxSize = 64 << 20

// ErrMalformed is wrapped by each error of Decode.
var ErrMalformed = errors.New("malformed flat encoding")

// Layout is what is known of a flat type. It is immutable, and may be used by
// several goroutines.
type Layout struct {
	Type        reflect.Type
	Size, Align uintptr   // of a value in memory
	Strings     []uintptr // offsets of the string headers, ascending
	Fixed       int       // bytes of an encoding; -1 if it depends on strings
	Dense       bool      // no padding, no strings: memory is the encoding
	Floats      bool      // holds a float or a complex, so it is no key
	Fields      []Field   // the leaves, in the order of the encoding

	enc, dec []step
	least    int // bytes of the shortest encoding
}

// Field is a leaf of a flat type, or an array of leaves.
type Field struct {
	Path string // "Price", "Items[].Price"; empty for the value itself
	Type string // "int64", "string", "[4]uint8"
}

// Of describes t, or says where and why it is not flat: one error for each
// place, joined.
func Of(t reflect.Type) (*Layout, error) {
	w := &walk{root: t}
	if err := w.check(t); err != nil {
		return nil, err
	}
	l := &Layout{
		Type:   t,
		Size:   t.Size(),
		Align:  uintptr(t.Align()),
		Floats: w.floats,
		Fields: w.fields,
	}
	enc, dec := plan{}, plan{checkBools: true}
	enc.add(t, 0)
	dec.add(t, 0)
	l.enc, l.dec = enc.steps, dec.steps
	l.Strings = stringOffsets(l.enc, 0, nil)
	l.least = leastWidth(l.enc)
	l.Fixed = l.least
	if len(l.Strings) > 0 {
		l.Fixed = -1
	}
	switch {
	case len(l.enc) == 0:
		l.Dense = l.Size == 0
	case len(l.enc) == 1:
		s := l.enc[0]
		l.Dense = s.op == copyBytes && s.off == 0 && uintptr(s.n) == l.Size
	}
	return l, nil
}

// OfKey is Of for the type of a key: floats are refused too. A float is not
// equal to itself if it is NaN, and equal to another encoding if it is zero.
func OfKey(t reflect.Type) (*Layout, error) {
	w := &walk{root: t, key: true}
	if err := w.check(t); err != nil {
		return nil, err
	}
	return Of(t)
}
