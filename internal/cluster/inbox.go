package cluster

import "sync"

// inbox is the queue of what the leader has to do next. Anyone may post; one
// goroutine (or a simulator) takes. Everything that changes the leader's state
// goes through it, so the leader needs no lock of its own.
type inbox struct {
	mu    sync.Mutex
	items []func()
	wake  chan struct{}
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (q *inbox) post(f func()) {
	q.mu.Lock()
	q.items = append(q.items, f)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// step runs the oldest item, and says whether there was one.
func (q *inbox) step() bool {
	q.mu.Lock()
	if len(q.items) == 0 {
		q.mu.Unlock()
		return false
	}
	f := q.items[0]
	q.items = q.items[1:]
	q.mu.Unlock()
	f()
	return true
}
