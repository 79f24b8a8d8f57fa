package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// JSON encodes T with encoding/json, on one line and without escaping HTML.
func JSON[T any]() Codec[T] {
	fields := describe(reflect.TypeFor[T](), jsonTags).sorted()
	return &fn[T]{
		enc: func(dst []byte, v T) ([]byte, error) {
			buf := bytes.NewBuffer(dst)
			e := json.NewEncoder(buf)
			e.SetEscapeHTML(false)
			if err := e.Encode(&v); err != nil {
				return dst, fmt.Errorf("encode %T as JSON: %w", v, err)
			}
			b := buf.Bytes()
			return b[:len(b)-1], nil // without Encode's newline
		},
		dec: func(b []byte) (T, error) {
			var v T
			if err := json.Unmarshal(b, &v); err != nil {
				return *new(T), fmt.Errorf("decode %T from JSON: %w", v, err)
			}
			return v, nil
		},
		schema: Schema{Format: formatJSON, Fingerprint: fingerprint(formatJSON, fields), Fields: fields},
	}
}

// Text is the string itself. It is not checked to be UTF-8, so nothing is lost.
func Text() Codec[string] {
	return &fn[string]{
		enc:    func(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil },
		dec:    func(b []byte) (string, error) { return string(b), nil },
		schema: Schema{Format: formatText, Fingerprint: fingerprint(formatText, nil)},
	}
}

// Bytes is the bytes themselves. Nil and empty slices decode as empty.
func Bytes() Codec[[]byte] {
	return &fn[[]byte]{
		enc:    func(dst []byte, v []byte) ([]byte, error) { return append(dst, v...), nil },
		dec:    func(b []byte) ([]byte, error) { return append([]byte{}, b...), nil },
		schema: Schema{Format: formatBytes, Fingerprint: fingerprint(formatBytes, nil)},
	}
}

// Func makes a Codec of two functions; format and version stand for its schema,
// so a change of the encoding must change one of them. The functions are called
// by several goroutines, and dec keeps nothing of its argument. Func panics if
// format is empty or is that of a codec of this package.
func Func[T any](format string, version int, enc func(dst []byte, v T) ([]byte, error), dec func([]byte) (T, error)) Codec[T] {
	switch format {
	case "", formatFlat, formatCBOR, formatJSON, formatText, formatBytes:
		panic(fmt.Sprintf("codec: the format of a Func must be a name of its own, not %q", format))
	}
	return &fn[T]{enc, dec, Schema{Format: format, Fingerprint: uint64(version)}}
}

type fn[T any] struct {
	enc    func([]byte, T) ([]byte, error)
	dec    func([]byte) (T, error)
	schema Schema
}

func (f *fn[T]) Append(dst []byte, v T) ([]byte, error) { return f.enc(dst, v) }
func (f *fn[T]) Decode(b []byte) (T, error)             { return f.dec(b) }
func (f *fn[T]) Schema() Schema                         { return f.schema }
