package sim

import "container/heap"

// timer calls f at a time, unless its process is dead by then.
type timer struct {
	p   *process
	at  int64
	seq uint64
	f   func()
}

func (t *timer) fire() {
	if t.p.alive && t.f != nil {
		t.f()
		t.p.wet()
	}
}

// timerQueue has the earliest timer first; among equals the oldest.
type timerQueue struct {
	h   timerHeap
	seq uint64
}

func (q *timerQueue) add(t *timer) {
	q.seq++
	t.seq = q.seq
	heap.Push(&q.h, t)
}

func (q *timerQueue) pop() { heap.Pop(&q.h) }

// first is the earliest timer that may still fire. One of a paused process
// fires when that goes on.
func (q *timerQueue) first() *timer {
	for len(q.h) > 0 {
		t := q.h[0]
		switch {
		case !t.p.alive || t.f == nil:
			q.pop()
		case t.at < t.p.pausedUntil:
			t.at = t.p.pausedUntil
			heap.Fix(&q.h, 0)
		default:
			return t
		}
	}
	return nil
}

func (q *timerQueue) due(now int64) *timer {
	if t := q.first(); t != nil && t.at <= now {
		return t
	}
	return nil
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *timerHeap) Push(x any)   { *h = append(*h, x.(*timer)) }
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}
