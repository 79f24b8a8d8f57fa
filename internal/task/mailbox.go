package task

import (
	"sync"
	"sync/atomic"
)

// mailbox is an unbounded queue: anyone may put, the subtask takes. To see that
// it is empty, which is nearly always, costs one atomic load.
type mailbox struct {
	waiting atomic.Int64
	mu      sync.Mutex
	in      []Mail
	out     []Mail // the taker's
	next    int
}

func (b *mailbox) put(m Mail) {
	b.mu.Lock()
	b.in = append(b.in, m)
	b.waiting.Add(1)
	b.mu.Unlock()
}

func (b *mailbox) take() (Mail, bool) {
	if b.waiting.Load() == 0 {
		return nil, false
	}
	if b.next == len(b.out) {
		b.mu.Lock()
		b.in, b.out = b.out[:0], b.in
		b.mu.Unlock()
		b.next = 0
	}
	m := b.out[b.next]
	b.out[b.next] = nil
	b.next++
	b.waiting.Add(-1)
	return m, true
}
