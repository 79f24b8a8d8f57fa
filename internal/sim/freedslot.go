package sim

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/staunchdev/staunch/storage/memstore"
)

// freedSlot plays the course of events for which a list has to follow once
// giving up has begun: the owner does not know what stands in its slot, another
// one takes over, builds on what stands there, and trims the log, so that the
// slot is free again; then the first one hears from the store again. By chance
// all this comes together in one of many thousand seeds.
//
//   - The record has landed, the other one has restored it, and the Void wins the
//     freed slot.
//   - Or the Void has landed, the other one has gone on without the record, and
//     the record, which was on its way for so long, fills the freed slot.
type freedSlot struct {
	by     *process // who does not know; nil: it has not begun
	name   string   // of the slot
	size   int64    // of the record; the Void has another one
	landed bool     // the record has, else the Void
	there  bool     // what stands in the slot first
	rival  bool     // another one is to take over
	over   bool
	until  int64 // when it ends in any case
}

// longestFreedSlot is how long the owner is cut off, at most.
const longestFreedSlot = 10 * int64(time.Second)

// freeSlots bends the profile of some seeds that are not directed otherwise:
// nothing else goes wrong, and the log is trimmed often.
func (p *profile) freeSlots(seed uint64) {
	if seed%(3*directedEvery) != 5 {
		return
	}
	r := rand.New(rand.NewPCG(seed, 0xf))
	p.directed, p.freesSlot, p.maxFaults = "freed slot", true, 0
	p.crashAt, p.crashLog, p.crashBank, p.rivalAt = nil, nil, nil, nil
	p.interval = time.Duration(50+r.IntN(100)) * time.Millisecond
	p.giveUp = time.Duration(50+r.IntN(150)) * time.Millisecond
	p.minPause, p.timeout, p.retain, p.trimEvery = 0, 2*time.Second, 2+r.IntN(3), 2+r.IntN(3)
	p.span, p.stepCost, p.recordCost, p.calmAt = int64(4*time.Second), int64(100*time.Microsecond), 0, 12_000
}

// outcome decides what becomes of a call of the store, if that is part of the
// course of events.
func (f *freedSlot) outcome(p *process, op memstore.Op) (out memstore.Outcome, decided bool) {
	w := p.w
	if f.by == nil && w.freesSlot && !w.calm && w.result.Checkpoints > 0 && op.Verb == memstore.Create &&
		strings.HasPrefix(op.Name, "log/") && p.cur != nil && strings.HasPrefix(p.cur.name, "append checkpoint") {
		*f = freedSlot{by: p, name: op.Name, size: op.Size, landed: w.rng.IntN(2) == 0, until: w.now + longestFreedSlot}
		w.tracef("%v is cut off from the log at %s, which lands: %v", p, f.name, f.landed)
		if f.landed {
			f.there, f.rival = true, true
			return memstore.Outcome{Fate: memstore.LoseReply}, true
		}
		return memstore.Outcome{Fate: memstore.Delay}, true
	}
	if f.by != p || f.over || !strings.HasPrefix(op.Name, "log/") {
		return out, false
	}
	switch void := op.Size != f.size; {
	case op.Verb != memstore.Create:
		return memstore.Unreachable(), true
	case void && !f.landed && !f.there:
		f.there, f.rival = true, true
		return memstore.Outcome{Fate: memstore.LoseReply}, true
	}
	return memstore.Outcome{Fate: memstore.LoseRequest}, true
}

// happen lets the other one start, and sees when the slot is free again.
func (f *freedSlot) happen(w *world) {
	if !f.holds() {
		return
	}
	if f.rival {
		f.rival = false
		w.start(true)
	}
	if _, stands := w.disk.Content(f.name); f.there && !stands || w.now > f.until || w.calm {
		f.over = true
		w.tracef("%v reaches the log again", f.by)
		for w.disk.Land() {
		}
		for _, p := range w.procs {
			if p != f.by { // it would trim again before the first one tries again
				p.pausedUntil = w.now + int64(2*time.Second)
			}
		}
	}
}

// holds says whether what is in flight is held back.
func (f *freedSlot) holds() bool { return f.by != nil && !f.over }
