package codec

import (
	"bytes"
	"fmt"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"
)

// CBOR encodes T as CBOR, structs by field name. The names are those of cbor
// tags, else of json tags, else of the fields. The encoding is deterministic.
// The codec of a type that would lose data fails at each call with the reasons.
func CBOR[T any]() Codec[T] {
	t := reflect.TypeFor[T]()
	d := describe(t, cborTags)
	c := &cborCodec[T]{schema: Schema{Format: formatCBOR, Fields: d.sorted()}, fault: d.err()}
	c.schema.Fingerprint = fingerprint(formatCBOR, c.schema.Fields)
	return c
}

type cborCodec[T any] struct {
	schema Schema
	fault  error
}

func (c *cborCodec[T]) Append(dst []byte, v T) ([]byte, error) {
	if c.fault != nil {
		return dst, c.fault
	}
	// The buffer continues dst, so the bytes are written where they stay. The
	// address makes v addressable, for marshalers with a pointer receiver.
	buf := bytes.NewBuffer(dst)
	if err := encMode.MarshalToBuffer(&v, buf); err != nil {
		return dst, fmt.Errorf("encode %T as CBOR: %w", v, err)
	}
	return buf.Bytes(), nil
}

func (c *cborCodec[T]) Decode(b []byte) (T, error) {
	var v T
	if c.fault != nil {
		return v, c.fault
	}
	if err := decMode.Unmarshal(b, &v); err != nil {
		return *new(T), fmt.Errorf("decode %T from CBOR: %w", v, err)
	}
	return v, nil
}

func (c *cborCodec[T]) Schema() Schema { return c.schema }

var (
	encMode = newEncMode()
	decMode = newDecMode()
)

// newEncMode is core deterministic CBOR, with what that leaves open or drops:
// times keep their nanoseconds and zone offset, and NaNs their bits.
func newEncMode() cbor.UserBufferEncMode {
	o := cbor.CoreDetEncOptions()
	o.NaNConvert = cbor.NaNConvertNone
	o.Time = cbor.TimeRFC3339Nano
	o.TextMarshaler = cbor.TextMarshalerTextString
	m, err := o.UserBufferEncMode()
	if err != nil {
		panic(err)
	}
	return m
}

// newDecMode reads all that newEncMode may have written: a Go string need not
// be UTF-8, and there is no bound on lists, whose data a checksum has already
// vouched for. A field is matched by its exact name, or old data of a removed
// field could end in a new one.
func newDecMode() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		UTF8:              cbor.UTF8DecodeInvalid,
		FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
		TextUnmarshaler:   cbor.TextUnmarshalerTextString,
		MaxArrayElements:  math.MaxInt32,
		MaxMapPairs:       math.MaxInt32,
		MaxNestedLevels:   1024,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}
