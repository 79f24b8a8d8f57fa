package operator

import (
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/transport"
)

// lane is one channel of an edge: the batch that is being filled, and an
// overflow, without bound and in order, of what the channel did not take.
//
// Batches come back to the lane that sent them through a queue of their own
// whose producer is the receiver. A sync.Pool would do for two goroutines, but
// it is emptied by every collection and its order is not the simulator's.
type lane[T any] struct {
	ch       Channel
	limit    int
	open     *element.Run[T]
	overflow []element.Element // from first on
	first    int

	free    *transport.Queue[*element.Run[T]]
	recycle func(*element.Run[T])
}

func (l *lane[T]) init(ch Channel, limit int) {
	l.ch, l.limit = ch, limit
	// As many as can be under way at once without overflow: in the channel, in
	// the receiver's hand, in ours. What comes back beyond is left to the collector.
	l.free = transport.NewQueue[*element.Run[T]](ch.Cap() + 2)
	free, pointers := l.free, element.HasPointers[T]()
	l.recycle = func(r *element.Run[T]) { // on the receiver's goroutine
		r.Reset(pointers)
		free.Push(r)
	}
}

// batch returns the batch that is being filled.
func (l *lane[T]) batch() *element.Run[T] {
	if l.open == nil {
		l.open = l.take()
	}
	return l.open
}

func (l *lane[T]) take() *element.Run[T] {
	if r, ok := l.free.Pop(); ok {
		return r
	}
	r := &element.Run[T]{}
	r.Reuse(l.recycle)
	return r
}

// append appends one record of a run.
func (l *lane[T]) append(r *element.Run[T], i int) {
	b := l.batch()
	b.Values = append(b.Values, r.Values[i])
	if r.Times != nil {
		b.Times = append(b.Times, r.Times[i])
	}
	if len(b.Values) >= l.limit {
		l.seal()
	}
}

// appendRun appends all records of a run.
func (l *lane[T]) appendRun(r *element.Run[T]) {
	for from := 0; from < len(r.Values); {
		b := l.batch()
		to := min(from+l.limit-len(b.Values), len(r.Values))
		b.Values = append(b.Values, r.Values[from:to]...)
		if r.Times != nil {
			b.Times = append(b.Times, r.Times[from:to]...)
		}
		if len(b.Values) >= l.limit {
			l.seal()
		}
		from = to
	}
}

// seal sends the open batch, if there is anything in it.
func (l *lane[T]) seal() {
	if l.open == nil || len(l.open.Values) == 0 {
		return
	}
	b := l.open
	l.open = nil
	l.push(element.Element{Kind: element.Records, Batch: b})
}

// push sends e behind everything sent before.
func (l *lane[T]) push(e element.Element) {
	if len(l.overflow) > 0 || !l.ch.Push(e) {
		l.overflow = append(l.overflow, e)
	}
}

// drain pushes what the channel takes, and says whether that was all.
func (l *lane[T]) drain() bool {
	if len(l.overflow) == 0 {
		return true
	}
	for ; l.first < len(l.overflow); l.first++ {
		if !l.ch.Push(l.overflow[l.first]) {
			return false
		}
		l.overflow[l.first] = element.Element{}
	}
	l.overflow, l.first = l.overflow[:0], 0
	return true
}

// queued counts the records that the channel has not taken.
func (l *lane[T]) queued() int {
	n := 0
	if l.open != nil {
		n = len(l.open.Values)
	}
	for _, e := range l.overflow[l.first:] {
		if e.Batch != nil {
			n += e.Batch.Len()
		}
	}
	return n
}
