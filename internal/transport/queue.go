package transport

import "sync/atomic"

// A cache line, twice: adjacent lines are fetched in pairs.
type pad [128]byte

// Queue is a bounded queue with one producer and one consumer, each of which
// may be a goroutine of its own. It holds exactly as many items as it was made
// for.
//
// head and tail only grow. The producer owns the slots [tail, head+capacity),
// the consumer [head, tail); each keeps its last view of the other's counter,
// so that an uncontended operation touches no line that the other side writes.
type Queue[T any] struct {
	slots    []T
	mask     uint64
	capacity uint64

	_        pad
	head     atomic.Uint64 // next to be popped; written by the consumer
	tailSeen uint64        // the consumer's last view of tail
	_        pad
	tail     atomic.Uint64 // next to be pushed; written by the producer
	headSeen uint64        // the producer's last view of head
	_        pad
}

// NewQueue returns a queue for capacity items, at least one.
func NewQueue[T any](capacity int) *Queue[T] {
	q := &Queue[T]{}
	q.init(capacity)
	return q
}

func (q *Queue[T]) init(capacity int) {
	capacity = max(capacity, 1)
	n := 1
	for n < capacity {
		n *= 2
	}
	q.slots, q.mask, q.capacity = make([]T, n), uint64(n-1), uint64(capacity)
}

// Cap is how many items the queue holds.
func (q *Queue[T]) Cap() int { return int(q.capacity) }

// Len is how many items are queued. To anyone but producer and consumer it is
// a number of the recent past.
func (q *Queue[T]) Len() int {
	head := q.head.Load() // first: tail never falls behind it
	return int(q.tail.Load() - head)
}

// Push appends v unless the queue is full.
func (q *Queue[T]) Push(v T) bool {
	tail := q.tail.Load()
	if tail-q.headSeen == q.capacity {
		q.headSeen = q.head.Load()
		if tail-q.headSeen == q.capacity {
			return false
		}
	}
	q.slots[tail&q.mask] = v
	q.tail.Store(tail + 1)
	return true
}

// Peek returns the oldest item where it stands, or nil. It is valid until Pop.
func (q *Queue[T]) Peek() *T {
	head := q.head.Load()
	if head == q.tailSeen {
		q.tailSeen = q.tail.Load()
		if head == q.tailSeen {
			return nil
		}
	}
	return &q.slots[head&q.mask]
}

// Pop takes the oldest item. Its slot keeps nothing of it alive.
func (q *Queue[T]) Pop() (v T, ok bool) {
	p := q.Peek()
	if p == nil {
		return v, false
	}
	v = *p
	var zero T
	*p = zero
	q.head.Store(q.head.Load() + 1)
	return v, true
}

// Each calls f for the queued items, oldest first, until it returns false. It
// is for the consumer.
func (q *Queue[T]) Each(f func(*T) bool) {
	tail := q.tail.Load()
	for i := q.head.Load(); i != tail; i++ {
		if !f(&q.slots[i&q.mask]) {
			return
		}
	}
}
