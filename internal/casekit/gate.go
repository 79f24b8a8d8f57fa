package casekit

import (
	"context"
	"sync"
)

// Gate holds up whoever passes while it is closed. The zero Gate is open.
type Gate struct {
	mu      sync.Mutex
	closed  chan struct{} // nil: open
	waiting int
}

// Close holds up everyone who passes from now on.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

// Open lets everyone pass.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

// Waiting is how many are held up.
func (g *Gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// Pass waits until the gate is open.
func (g *Gate) Pass() { g.PassContext(context.Background()) }

// PassContext waits until the gate is open or ctx ends.
func (g *Gate) PassContext(ctx context.Context) error {
	g.mu.Lock()
	closed := g.closed
	if closed == nil {
		g.mu.Unlock()
		return nil
	}
	g.waiting++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.waiting--
		g.mu.Unlock()
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
