package flat

import (
	"testing"
	"unsafe"
)

func BenchmarkAppendUint64(b *testing.B) { bench(b, uint64(1)) }
func BenchmarkAppendDense(b *testing.B)  { bench(b, denseOrder{ID: 1}) }
func BenchmarkAppendString(b *testing.B) { bench(b, "customer-123") }
func BenchmarkAppendInner(b *testing.B)  { bench(b, inner{true, 5, "customer-123"}) }

func bench[T any](b *testing.B, v T) {
	l := layout[T](b)
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		buf = l.Append(buf[:0], unsafe.Pointer(&v))
	}
}

func BenchmarkDecodeDense(b *testing.B) {
	v := denseOrder{ID: 1}
	l := layout[denseOrder](b)
	in := l.Append(nil, unsafe.Pointer(&v))
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Decode(in, unsafe.Pointer(&v)); err != nil {
			b.Fatal(err)
		}
	}
}
