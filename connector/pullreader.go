package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
)

// pullQueue is how many records of a split may wait for Poll.
const pullQueue = 1024

// errReaderClosed is what emit returns once the reader is closed.
var errReaderClosed = errors.New("connector: the reader is closed")

// pullReader is the Reader of a Pull.
type pullReader[T any] struct {
	read   func(context.Context, Split, func(T, Offset) error) error
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	ready  chan struct{}

	queues []*pullSplit[T]
	turn   int
}

// pullSplit is what the goroutine of a split hands over. Each offset stays with
// its record, so that the position is that of the last record taken and not of
// the last one read.
type pullSplit[T any] struct {
	id   string
	next Offset        // behind the last record taken; of Poll's goroutine
	room chan struct{} // one element: the queue may have room

	mu      sync.Mutex
	values  []T
	offsets []Offset
	done    bool
	err     error
}

// Add implements Reader.
func (r *pullReader[T]) Add(s Split) error {
	if err := context.Cause(r.ctx); err != nil {
		return fmt.Errorf("add split %s: %w", s.ID, err)
	}
	q := &pullSplit[T]{id: s.ID, next: s.Next, room: make(chan struct{}, 1)}
	r.queues = append(r.queues, q)
	r.wg.Go(func() {
		err := r.run(s, q)
		q.mu.Lock()
		q.done, q.err = true, err
		q.mu.Unlock()
		r.signal()
	})
	return nil
}

// run calls the user's Read. A panic there fails the split and not the process.
func (r *pullReader[T]) run(s Split, q *pullSplit[T]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in Read: %v\n%s", p, debug.Stack())
		}
	}()
	return r.read(r.ctx, s, func(v T, next Offset) error { return r.emit(q, v, next) })
}

func (r *pullReader[T]) emit(q *pullSplit[T], v T, next Offset) error {
	for {
		if err := context.Cause(r.ctx); err != nil {
			return err
		}
		q.mu.Lock()
		n := len(q.values)
		if n < pullQueue {
			q.values = append(q.values, v)
			q.offsets = append(q.offsets, next)
		}
		q.mu.Unlock()
		if n == 0 {
			r.signal()
		}
		if n < pullQueue {
			return nil
		}
		select {
		case <-q.room:
		case <-r.ctx.Done():
		}
	}
}

// Poll implements Reader.
func (r *pullReader[T]) Poll(b *Batch[T], max int) (string, Offset, error) {
	for range len(r.queues) {
		if r.turn >= len(r.queues) {
			r.turn = 0
		}
		q := r.queues[r.turn]
		n, drained, err := q.take(b, max)
		switch {
		case n == 0 && !drained:
			r.turn++
			continue
		case drained && err == nil:
			r.queues = append(r.queues[:r.turn], r.queues[r.turn+1:]...)
			err = io.EOF
		case drained && n == 0:
			err = fmt.Errorf("read split %s: %w", q.id, err)
		default:
			r.turn++
			err = nil // of what comes behind these records; for the next Poll
		}
		r.signal()
		return q.id, q.next, err
	}
	return "", Offset{}, ErrEmpty
}

// take moves at most max records to b. drained says that nothing is left and
// nothing will come; then err is what Read returned.
func (q *pullSplit[T]) take(b *Batch[T], max int) (n int, drained bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n = min(max, len(q.values)); n > 0 {
		b.Values = append(b.Values, q.values[:n]...)
		q.next = q.offsets[n-1]
		left := copy(q.values, q.values[n:])
		copy(q.offsets, q.offsets[n:])
		clear(q.values[left:])
		clear(q.offsets[left:])
		q.values, q.offsets = q.values[:left], q.offsets[:left]
		select {
		case q.room <- struct{}{}:
		default:
		}
	}
	return n, q.done && len(q.values) == 0, q.err
}

func (r *pullReader[T]) signal() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// Available implements Reader.
func (r *pullReader[T]) Available() <-chan struct{} { return r.ready }

// Close cancels the context of the Reads and waits for them.
func (r *pullReader[T]) Close() error {
	r.cancel(errReaderClosed)
	r.wg.Wait()
	return nil
}
