// Package element has what flows through channels: batches of records,
// watermarks, barriers, cancel markers and the end of input.
package element

import "github.com/staunchdev/staunch/internal/checkpoint"

// Kind says what an Element is.
type Kind uint8

const (
	Records      Kind = iota + 1 // Batch is set
	Watermark                    // Time is set
	Barrier                      // Barrier is set
	CancelMarker                 // Barrier.ID is set: its barrier will not come, or came in vain
	EndOfInput                   // nothing follows
)

func (k Kind) String() string {
	switch k {
	case Records:
		return "records"
	case Watermark:
		return "watermark"
	case Barrier:
		return "barrier"
	case CancelMarker:
		return "cancel"
	case EndOfInput:
		return "end"
	}
	return "unknown"
}

// Element is one entry of a channel.
type Element struct {
	Kind    Kind
	Batch   Batch              // of Records: a *Run[T]
	Time    int64              // of Watermark: Unix nanoseconds
	Barrier checkpoint.Barrier // of Barrier and CancelMarker
}

// Batch is a *Run[T] whose T is not known here.
type Batch interface {
	Len() int
	// Recycle gives the memory back; the batch must not be used after it.
	Recycle()
}

// Run is a run of records in columns. Times is nil where the stream has no
// event time, Hashes where no key has been computed; else they are as long as
// Values. Whoever pops a Run from a channel owns it and recycles it.
type Run[T any] struct {
	Values []T
	Times  []int64
	Hashes []uint64
	free   func(*Run[T])
}

// Len is the number of records.
func (r *Run[T]) Len() int { return len(r.Values) }

// Recycle gives r back to where it came from.
func (r *Run[T]) Recycle() {
	if r.free != nil {
		r.free(r)
	}
}
