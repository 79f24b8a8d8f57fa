package sim

import (
	"context"
	"strings"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

// fate decides what becomes of a call of the store.
func (p *process) fate(op memstore.Op) memstore.Outcome {
	w := p.w
	slow := w.slowStore
	if op.Verb == memstore.Create && strings.HasPrefix(op.Name, checkpoint.ManifestPrefix) || op.Verb == memstore.List && op.Name == checkpoint.ObjectPrefix {
		slow = (slow + 9) / 10 // what others do meanwhile matters most here
	}
	if w.slowManifest != 0 && op.Verb == memstore.Create && strings.HasPrefix(op.Name, checkpoint.ManifestPrefix) {
		slow = w.slowManifest
	}
	if p.cur != nil && w.happens(slow) {
		p.Sleep(context.Background(), time.Duration(w.rng.Int64N(3*int64(w.timeout))))
	}
	w.audit.look()
	if op.Verb == memstore.List && op.Name == "log/" && p.epoch.Generation == 0 && len(w.procs) > 1 && !w.calm && w.rng.IntN(4) == 0 {
		// A starter that has seen the end of the log stands still, while the owner
		// appends and trims.
		p.pausedUntil = w.now + w.rng.Int64N(int64(2*time.Second))
		w.tracef("%v is paused", p)
	}
	out := p.outcome(op)
	if w.Trace != nil && op.Verb != memstore.Append {
		w.tracef("%v: %v -> %s", p, op, fates[out.Fate])
	}
	return out
}

var fates = [...]string{"proceeds", "refused", "request lost", "reply lost", "delayed", "unsynced", "truncated", "damaged"}

func (p *process) outcome(op memstore.Op) memstore.Outcome {
	w := p.w
	if out, decided := w.freed.outcome(p, op); decided {
		return out
	}
	switch {
	case strings.HasPrefix(op.Name, "probe/"):
		return memstore.Outcome{}
	case p.outageUntil > w.now:
		if op.Verb == memstore.Create || op.Verb == memstore.Commit || op.Verb == memstore.Delete {
			return memstore.Outcome{Fate: pickFate(w, memstore.LoseRequest, memstore.LoseRequest, memstore.LoseReply, memstore.Delay)}
		}
		return memstore.Unreachable()
	case p.flickers && op.Verb == memstore.List:
		p.flickers = false
		return memstore.Unreachable()
	case op.Verb == memstore.Create || op.Verb == memstore.Commit:
		return p.createFate(op)
	case op.Verb == memstore.Delete:
		w.audit.deleting(p, op.Name)
		p.deletes++
		switch {
		case w.happens(w.refuse):
			return memstore.Outcome{Fate: memstore.Refuse}
		case w.happens(w.unknown):
			return memstore.Outcome{Fate: pickFate(w, memstore.LoseRequest, memstore.LoseReply, memstore.Delay)}
		}
	case op.Verb == memstore.Write || op.Verb == memstore.Append:
		if w.happens(w.refuse) {
			return memstore.Outcome{Fate: memstore.Refuse}
		}
	case w.happens(w.unreadable):
		return memstore.Unreachable()
	}
	return memstore.Outcome{}
}

// outage cuts a process off from the store, and at times from the bank, at a
// create of which nobody knows whether it has arrived. Much else comes together
// then: a subtask fails, the user asks, an old message arrives.
func (p *process) outage() {
	w := p.w
	d := w.rng.Int64N(3*int64(w.giveUp)) + 1
	p.outageUntil = w.now + d
	p.bankCut, p.flickers = w.rng.IntN(2) == 0, w.rng.IntN(3) == 0
	w.failNext = w.rng.IntN(2) == 0
	if w.happens(w.longOutage) {
		d += int64(w.giveUp) + w.rng.Int64N(9*int64(w.giveUp))
		p.outageUntil = w.now + d
	}
	if w.slowLeader != 0 && w.rng.IntN(2) == 0 {
		p.leaderStands(time.Duration(d))
	}
	meanwhile := func(f func()) { p.After(time.Duration(w.rng.Int64N(d)), f) }
	if w.mayStop(2) {
		meanwhile(p.stop)
	}
	if w.requests != 0 {
		meanwhile(p.request)
	}
	if m := p.oldDecline; m != nil {
		meanwhile(m)
	}
}

// createFate also plays the deaths of a process around a create in the log: it
// may be there or not, or come to be there much later.
func (p *process) createFate(op memstore.Op) memstore.Outcome {
	w := p.w
	if strings.HasPrefix(op.Name, "log/") {
		w.appends++
		if w.mayStop(20) {
			p.stopSoon(30 * w.stepCost)
		}
		if !w.calm && once(&w.crashLog, w.appends) {
			p.doomed = true
			switch w.rng.IntN(5) {
			case 0:
				return memstore.Outcome{Fate: memstore.LoseRequest}
			case 1:
				return memstore.Outcome{Fate: memstore.Delay}
			case 2:
				return p.unsynced(op)
			}
			return memstore.Outcome{}
		}
	}
	switch {
	case strings.HasPrefix(op.Name, "log/") && (w.directed == "" || p.epoch.Generation > 0) && w.happens(w.outage):
		p.outage()
		return memstore.Outcome{Fate: pickFate(w, memstore.LoseRequest, memstore.LoseReply, memstore.Delay)}
	case w.happens(w.refuse):
		return memstore.Outcome{Fate: memstore.Refuse, Err: storage.ErrUnreachable}
	case w.happens(w.unknown):
		return memstore.Outcome{Fate: pickFate(w, memstore.LoseRequest, memstore.LoseReply, memstore.Delay, memstore.Delay)}
	case w.happens(w.unsynced):
		return p.unsynced(op)
	}
	if _, taken := w.disk.Content(op.Name); !taken && strings.HasPrefix(op.Name, "log/") {
		w.halfLinked = false // its sync makes the name before it durable too
	}
	return memstore.Outcome{}
}

// unsynced has the process die between the link of a name and the sync of its
// directory: the object is visible, but not durable. Of the log only the last
// record is, since a directory keeps the order of its names.
func (p *process) unsynced(op memstore.Op) memstore.Outcome {
	p.doomed = true
	if strings.HasPrefix(op.Name, "log/") {
		if p.w.halfLinked {
			return memstore.Outcome{}
		}
		p.w.halfLinked = true
	}
	return memstore.Outcome{Fate: memstore.Unsynced}
}

func pickFate(w *world, fs ...memstore.Fate) memstore.Fate { return fs[w.rng.IntN(len(fs))] }
