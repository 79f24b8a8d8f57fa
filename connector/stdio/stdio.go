// Package stdio writes to a stream, at least once.
package stdio

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/staunchdev/staunch/connector"
)

// Sink prints records, one a line. The lines of several subtasks do not
// interleave.
type Sink[T any] struct {
	W      io.Writer      // nil: os.Stdout
	Format func(T) string // nil: fmt.Sprint

	mu sync.Mutex // holds W
}

// Print prints records with fmt.Sprint.
func Print[T any]() *Sink[T] { return &Sink[T]{} }

// Printf prints records with format.
func Printf[T any](format func(T) string) *Sink[T] { return &Sink[T]{Format: format} }

// Spec implements connector.Sink.
func (s *Sink[T]) Spec() connector.SinkSpec {
	system := "stream"
	if s.W == nil {
		system = "stdout"
	}
	return connector.SinkSpec{
		Kind:   connector.AtLeastOnce,
		System: system,
		Why:    "a stream that is written cannot be taken back",
	}
}

// Writer implements connector.Sink.
func (s *Sink[T]) Writer(context.Context, connector.Instance) (connector.Writer[T], error) {
	return &writer[T]{s: s}, nil
}

// writer formats a batch, and writes it by one call.
type writer[T any] struct {
	s   *Sink[T]
	buf []byte
}

// Write implements connector.Writer.
func (w *writer[T]) Write(_ context.Context, b connector.Batch[T]) error {
	w.buf = w.buf[:0]
	for _, v := range b.Values {
		if w.s.Format != nil {
			w.buf = append(w.buf, w.s.Format(v)...)
		} else {
			w.buf = fmt.Append(w.buf, v)
		}
		w.buf = append(w.buf, '\n')
	}
	return w.s.write(w.buf)
}

func (s *Sink[T]) write(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.W
	if out == nil {
		out = os.Stdout
	}
	if _, err := out.Write(p); err != nil {
		return fmt.Errorf("print records: %w", err)
	}
	return nil
}

// Prepare implements connector.Writer. What was written is with the stream; one
// that buffers and has a Flush, as bufio.Writer, is flushed.
func (w *writer[T]) Prepare(context.Context, connector.CheckpointID) ([]connector.Committable, error) {
	f, ok := w.s.W.(interface{ Flush() error })
	if !ok {
		return nil, nil
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if err := f.Flush(); err != nil {
		return nil, fmt.Errorf("flush printed records: %w", err)
	}
	return nil, nil
}

// Close implements connector.Writer.
func (w *writer[T]) Close() error { return nil }
