package flat

import (
	"bytes"
	"errors"
	"testing"
	"unsafe"
)

// FuzzFlatDecode holds Decode to its word: what it accepts is exactly what
// Append makes, and everything else is an error.
func FuzzFlatDecode(f *testing.F) {
	v := mixed{A: -1, E: "text", C: true}
	v.I[8].Name = "name"
	f.Add(layout[mixed](f).Append(nil, unsafe.Pointer(&v)))
	o := denseOrder{ID: 1, OK: [8]bool{true}}
	f.Add(layout[denseOrder](f).Append(nil, unsafe.Pointer(&o)))
	f.Add([]byte("\x80\x00"))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		again[mixed](t, b)
		again[denseOrder](t, b)
		again[inner](t, b)
		again[[2]string](t, b)
		again[[6]struct {
			A string
			B bool
		}](t, b)
	})
}

func again[T any](t *testing.T, b []byte) {
	l := layout[T](t)
	var v T
	if err := l.Decode(b, unsafe.Pointer(&v)); err != nil {
		if !errors.Is(err, ErrMalformed) {
			t.Fatalf("%T: %v", v, err)
		}
		return
	}
	if got := l.Append(nil, unsafe.Pointer(&v)); !bytes.Equal(got, b) {
		t.Fatalf("%T: %x became %x", v, b, got)
	}
}
