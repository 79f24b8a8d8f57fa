package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// A user may stop a job, and start it again later. A job that is told to stop
// ends by itself: whatever it was doing, nothing of it goes on behind that. At
// times it takes the user too long, and the process is killed.

var errStopped = errors.New("the user stops the job")

// letUserAct decides what the user does. It draws from its own source of
// randomness, as direct does.
func (p *profile) letUserAct(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x5))
	p.alarms = r.IntN(2) == 0
	if p.directed != "" {
		return // what fails there all the time would keep a further start from beginning
	}
	if r.IntN(4) == 0 {
		p.stops = 1 + r.IntN(4)
		p.stopAt = []int{20 + r.IntN(1500), 20 + r.IntN(3000)}
	}
	if r.IntN(3) == 0 {
		p.branches = 1 + r.IntN(2)
	}
	if r.IntN(3) == 0 {
		p.pins = 1 + r.IntN(4)
	}
	slices.Sort(p.stopAt)
}

// mayStop says whether the user stops a process at one in n occasions.
func (w *world) mayStop(n int) bool {
	if w.calm || w.stops == 0 || w.rng.IntN(n) > 0 {
		return false
	}
	w.stops--
	return true
}

// stop tells a process to stop.
func (p *process) stop() {
	if !p.alive || p.stopping {
		return
	}
	w := p.w
	w.tracef("%v is told to stop", p)
	p.stopping = true
	w.result.Stops++
	p.exec.Stop(errStopped)
	p.wet()
	if w.rng.IntN(4) == 0 {
		p.killAt = w.result.Steps + 1 + w.rng.IntN(60)
	}
}

// stopSoon tells it after a while.
func (p *process) stopSoon(within int64) {
	p.After(time.Duration(p.w.rng.Int64N(within)), p.stop)
}

// checkOver runs when a process has ended by itself: its subtasks are gone and
// the lock is free. What still returns from the executor calls nobody any more.
func (p *process) checkOver() {
	for _, a := range p.actors {
		if a.kind == stepping {
			p.w.fail("%v has ended, but %s does not", p, a.name)
			return
		}
	}
	p.over = true
	p.drain()
	if p.w.bank.owner == p {
		p.w.fail("%v has ended, and keeps the lock of the job", p)
	}
}
