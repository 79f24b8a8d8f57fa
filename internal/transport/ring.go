package transport

import (
	"sync/atomic"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
)

// Ring is a channel between two subtasks of one process. Its capacity counts
// elements: batches, barriers and the like.
//
// The consumer is woken by every Push, which costs nothing while it runs. The
// producer is woken only after it found the ring full, and then when half of
// the ring is free again or when the consumer blocks the channel: waking it for
// each free slot would let the two run in lockstep.
type Ring struct {
	q Queue[element.Element]

	onPush, onPop func()

	starved atomic.Bool  // the producer found the ring full
	pushed  atomic.Int64 // records, written by the producer
	popped  atomic.Int64 // records, written by the consumer
}

// NewRing returns a ring for capacity elements.
func NewRing(capacity int) *Ring {
	r := &Ring{onPush: func() {}, onPop: func() {}}
	r.q.init(capacity)
	return r
}

// NotifyConsumer sets what wakes the consumer. It must be set before either
// side uses the ring, and so must that of NotifyProducer.
func (r *Ring) NotifyConsumer(wake func()) { r.onPush = wake }

// NotifyProducer sets what wakes the producer.
func (r *Ring) NotifyProducer(wake func()) { r.onPop = wake }

// Cap is how many elements the ring holds.
func (r *Ring) Cap() int { return r.q.Cap() }

// Len is how many elements are queued.
func (r *Ring) Len() int { return r.q.Len() }

// Records is how many records are queued. Anyone may ask.
func (r *Ring) Records() int64 {
	popped := r.popped.Load() // first: pushed never falls behind it
	return r.pushed.Load() - popped
}

// Push appends e unless the ring is full.
func (r *Ring) Push(e element.Element) bool {
	n := int64(0)
	if e.Batch != nil {
		n = int64(e.Batch.Len())
		// Before the element can be seen, so that Records is never negative.
		r.pushed.Store(r.pushed.Load() + n)
	}
	if r.q.Push(e) || r.pushAgain(e) {
		r.onPush()
		return true
	}
	if n > 0 {
		r.pushed.Store(r.pushed.Load() - n)
	}
	return false
}

// pushAgain announces that the producer is about to wait and tries once more:
// the consumer may have made room before it could see the announcement.
func (r *Ring) pushAgain(e element.Element) bool {
	r.starved.Store(true)
	if !r.q.Push(e) {
		return false
	}
	r.starved.Store(false)
	return true
}

// Peek returns the oldest element where it stands, or nil. It is valid until Pop.
func (r *Ring) Peek() *element.Element { return r.q.Peek() }

// Pop takes the oldest element.
func (r *Ring) Pop() (element.Element, bool) {
	e, ok := r.q.Pop()
	if !ok {
		return e, false
	}
	if e.Batch != nil {
		r.popped.Store(r.popped.Load() + int64(e.Batch.Len()))
	}
	if r.starved.Load() && r.q.Len() <= r.q.Cap()/2 {
		r.Relieve()
	}
	return e, true
}

// Relieve wakes a producer that found the ring full. The consumer calls it
// when it will not pop for a while, so that the ring fills to its capacity.
func (r *Ring) Relieve() {
	if r.starved.Swap(false) {
		r.onPop()
	}
}

// Ahead is how many records stand before barrier id, or all if it has not come.
// It is for the consumer.
func (r *Ring) Ahead(id checkpoint.ID) (records int64) {
	r.q.Each(func(e *element.Element) bool {
		if e.Kind == element.Barrier && e.Barrier.ID == id {
			return false
		}
		if e.Batch != nil {
			records += int64(e.Batch.Len())
		}
		return true
	})
	return records
}
