package sim

import "iter"

// coroutine runs pieces of work one after the other: new ones cost a stack that
// has to grow first.
type coroutine struct {
	work  func()
	next  func() (done, ok bool)
	stop  func()
	out   func(done bool) bool
	dying bool
}

// coroutine returns one that has no work.
func (w *world) coroutine() *coroutine {
	if n := len(w.idle); n > 0 {
		c := w.idle[n-1]
		w.idle = w.idle[:n-1]
		return c
	}
	c := &coroutine{}
	c.next, c.stop = iter.Pull(func(out func(bool) bool) {
		c.out = out
		for c.run() && out(true) {
		}
	})
	return c
}

// run runs the work, and says whether the coroutine may be used again.
func (c *coroutine) run() (ok bool) {
	defer func() {
		if c.dying {
			recover()
		}
	}()
	c.work()
	return !c.dying
}

// killed is what a coroutine of a dead process panics with.
type killed struct{}

// yield lets others run. Work that a subtask does on its own goroutine (inline
// snapshots) does not switch.
func (p *process) yield() {
	if p.cur == nil {
		return
	}
	if c := p.cur.co; c.dying || !c.out(false) {
		c.dying = true
		panic(killed{})
	}
}
