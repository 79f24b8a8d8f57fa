package file

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

type order struct {
	ID       string    `json:"id"`
	Customer string    `json:"customer"`
	Cents    int64     `json:"cents"`
	Time     time.Time `json:"time"`
}

func benchSource[T any](b *testing.B, c codec.Codec[T]) {
	const n = 100_000
	var content strings.Builder
	for i := range n {
		fmt.Fprintf(&content, "{\"id\":\"o-%d\",\"customer\":\"c-%d\",\"cents\":%d,\"time\":\"2026-01-02T03:04:05Z\"}\n", i, i%1000, i%5000)
	}
	s := NewSource(writeFile(b, filepath.Join(b.TempDir(), "in.jsonl"), content.String()), c)
	sp := splits(b, s)[0]
	batch := connector.Batch[T]{Values: make([]T, 0, 1024)}
	b.SetBytes(int64(content.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r, err := s.Reader(b.Context(), connector.Instance{})
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Add(sp); err != nil {
			b.Fatal(err)
		}
		for err = nil; err != io.EOF; {
			batch.Values = batch.Values[:0]
			if _, _, err = r.Poll(&batch, 1024); err != nil && err != io.EOF {
				b.Fatal(err)
			}
		}
		r.Close()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

func BenchmarkSource(b *testing.B) {
	b.Run("json", func(b *testing.B) { benchSource(b, codec.JSON[order]()) })
	b.Run("text", func(b *testing.B) { benchSource(b, codec.Text()) })
	// A codec that does nothing: what the reader itself costs.
	b.Run("none", func(b *testing.B) {
		benchSource(b, codec.Func("none", 1,
			func(dst []byte, v int) ([]byte, error) { return dst, nil },
			func(b []byte) (int, error) { return len(b), nil }))
	})
}

func BenchmarkSink(b *testing.B) {
	values := make([]order, 1000)
	for i := range values {
		values[i] = order{ID: fmt.Sprint("o-", i), Customer: "c-17", Cents: int64(i), Time: time.Unix(1e9, 0).UTC()}
	}
	s := NewSink(b.TempDir(), codec.JSON[order]())
	w, err := s.Writer(b.Context(), at(1, 1, 0))
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	b.ReportAllocs()
	const batches = 100
	id := connector.CheckpointID(0)
	for b.Loop() {
		for range batches {
			if err := w.Write(b.Context(), connector.Batch[order]{Values: values}); err != nil {
				b.Fatal(err)
			}
		}
		id++
		cs, err := w.Prepare(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Commit(b.Context(), cs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(batches*len(values))*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
