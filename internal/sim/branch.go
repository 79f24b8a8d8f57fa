package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
)

// A user may start a job from an older checkpoint, or fresh. The history of the
// job has branches then, lineages, and what must be in the bank is what was
// committed on the one that is continued, up to where each lineage was left:
// behind that, the same orders are committed once more, if the user accepts it.

// wanted is what the user asks of a start.
type wanted struct {
	from   checkpoint.ID // 0: the newest
	fresh  bool
	accept bool // repeats
}

// want has the user look at what is kept and, at times, go back.
func (w *world) want() wanted {
	if w.calm || w.finished || w.started < 2 || w.branches == 0 || w.rng.IntN(3) == 0 {
		return wanted{}
	}
	v, err := ckptlog.Read(context.Background(), w.disk.Open())
	if err != nil {
		if !errors.Is(err, ckptlog.ErrEmpty) {
			w.fail("read the log: %w", err)
		}
		return wanted{}
	}
	kept := v.Retained()
	if len(kept) == 0 && w.rng.IntN(4) > 0 {
		return wanted{}
	}
	w.branches--
	switch n := w.rng.IntN(10); {
	case n < 3:
		return wanted{fresh: true}
	case n == 3 || len(kept) == 0:
		return wanted{from: v.NextID() + checkpoint.ID(w.rng.IntN(3)), accept: true} // there is none
	}
	return wanted{from: kept[w.rng.IntN(max(len(kept)-1, 1))].ID, accept: w.rng.IntN(4) > 0}
}

// again says whether the user starts a job again that has come to its end, to
// have it do something over.
func (w *world) again() bool {
	if w.broken != nil || w.branches == 0 || w.rng.IntN(3) == 0 {
		return false
	}
	w.calm, w.finished = false, false
	w.calmAt = w.result.Steps + 500 + w.rng.IntN(1500)
	w.startAt = w.now + 1
	return true
}

func (x wanted) into(o *cluster.Options) {
	o.From, o.Fresh, o.AcceptRepeats = x.from, x.fresh, x.accept
}

// refused says whether a start was refused because of the checkpoint that it
// was to begin with. Then that must be so, and nothing may have happened but
// that the job was taken over.
func (w *world) refused(p *process, err error) bool {
	a, id := &w.audit, p.wanted.from
	if id == 0 {
		return false
	}
	a.look()
	switch text := err.Error(); {
	case strings.Contains(text, fmt.Sprintf("there is no checkpoint %d to start from", id)):
		if _, there := a.holds[id]; there && a.owner() == p.String() {
			w.fail("%v was refused, but the checkpoint is there: %w", p, err)
		}
	case strings.Contains(text, "sinks have committed output behind"):
		if p.wanted.accept || a.committable <= id {
			w.fail("%v was refused; accepted: %v, the newest checkpoint with committables: %d: %w", p, p.wanted.accept, a.committable, err)
		}
	case strings.Contains(text, fmt.Sprintf("the job was started fresh since checkpoint %d", id)):
		if p.wanted.accept || w.Mode != checkpoint.AtMostOnce {
			w.fail("%v was refused; accepted: %v: %w", p, p.wanted.accept, err)
		}
	default:
		return false
	}
	if p.deletes > 0 || p.commits > 0 || a.owner() == p.String() && a.since > 0 {
		w.fail("%v was refused, but had deleted %d objects, committed %d transactions and appended %d records", p, p.deletes, p.commits, a.since)
	}
	return true
}

// checkStart says whether a process begins where the user wants it to.
func (w *world) checkStart(p *process, e cluster.Started) {
	x := p.wanted
	if e.Epoch.Attempt == 1 && (x.fresh && e.Restored != 0 || x.from != 0 && e.Restored != x.from) {
		w.fail("%v is to start with %+v, and has restored checkpoint %d", p, x, e.Restored)
	}
}

// branch is a Restore record, and whether repeats were accepted at it.
type branch struct {
	ckptlog.Restore
	accept bool
	across bool // a fresh start: what had been emitted behind From was forgotten
}

// branched takes a Restore record in: what the branch that is left has decided
// must be committed by then, and a fresh start has set its output aside.
func (a *audit) branched(e ckptlog.Entry, r ckptlog.Restore) {
	w := a.w
	if len(a.uncommitted) > 0 {
		w.fail("lineage %d begins, but checkpoints %d of the one before are not committed", e.Slot, a.uncommitted)
	}
	p := w.byName[a.owner()]
	if p.wanted.from != r.From || p.wanted.fresh != (r.From == 0) {
		w.fail("%v was to start with %+v, and begins a lineage from %d", p, p.wanted, r.From)
	}
	for sink := range p.sinks {
		if r.From == 0 && !p.renewed[sink] {
			w.fail("%v starts fresh, but sink %s was not asked to set its output aside", p, sink)
		}
	}
	if a.branches == nil {
		a.branches = map[uint64]branch{}
	}
	across := r.From != 0 && a.root(r.Lineage) != a.root(a.lineage)
	if across && !p.wanted.accept && w.Mode == checkpoint.AtMostOnce {
		w.fail("REPEATED: %v goes back across a fresh start, and nobody accepted that it repeats what was emitted", p)
	}
	a.branches[e.Slot] = branch{r, p.wanted.accept, across}
	a.begins(e.Slot)
	if !a.rebuilding {
		w.finished = false // whoever comes to the end now has a new one
		w.result.Branches++
	}
}

// begins makes lineage the one that is continued.
func (a *audit) begins(lineage uint64) {
	if a.lineageOf == nil {
		a.lineageOf = map[string]uint64{}
	}
	a.lineage = lineage
	a.lineageOf[a.owner()] = lineage
}

// root is the lineage from whose beginning on AtMostOnce repeats nothing: it
// began fresh, or went back across such a start.
func (a *audit) root(lineage uint64) uint64 {
	for a.branches[lineage].From != 0 && !a.branches[lineage].across {
		lineage = a.branches[lineage].Lineage
	}
	return lineage
}

// onBranch says whether what was prepared belongs to the history that ends with
// the newest checkpoint of a lineage.
func (a *audit) onBranch(t *transaction, lineage uint64) bool {
	upto := ^checkpoint.ID(0)
	for {
		if t.lineage == lineage {
			return t.prepared <= upto
		}
		b := a.branches[lineage]
		if b.From == 0 {
			return false
		}
		upto, lineage = min(upto, b.From), b.Lineage
	}
}

// output is what was committed on a branch.
type output struct {
	ledger  []line
	totals  []total
	journal []order
}

func (w *world) committedOn(on func(*transaction) bool) (out output) {
	for _, t := range w.bank.order {
		if !on(t) {
			continue
		}
		for _, e := range t.entries {
			switch e.of {
			case 'l':
				out.ledger = append(out.ledger, e.line)
			case 't':
				out.totals = append(out.totals, e.total)
			case 'j':
				out.journal = append(out.journal, e.line.Order)
			}
		}
	}
	return out
}

// checkBranches looks at what was committed on branches that were left: nothing
// of it is wrong, it only ends early. And nothing was repeated that nobody
// accepted.
func (w *world) checkBranches(in [][]order) {
	a := &w.audit
	left := promise{lost: true, repeated: w.Mode == checkpoint.AtLeastOnce}
	for lineage, b := range a.branches {
		for _, of := range []uint64{lineage, b.Lineage} {
			if err := w.checkAll(in, w.committedOn(func(t *transaction) bool { return a.onBranch(t, of) }), left); err != nil {
				w.fail("lineage %d: %w", of, err)
			}
		}
		if b.From == 0 || b.accept {
			continue
		}
		for _, t := range w.bank.order {
			if a.onBranch(t, b.Lineage) && !a.onBranch(t, lineage) {
				w.fail("REPEATED: lineage %d begins at checkpoint %d, %s was committed behind it, and nobody accepted that", lineage, b.From, t.id)
			}
		}
	}
	if w.Mode != checkpoint.AtMostOnce {
		return
	}
	type applied struct {
		order order
		root  uint64
	}
	seen := map[applied]string{}
	for _, t := range w.bank.order {
		for _, e := range t.entries {
			k := applied{e.line.Order, a.root(t.lineage)}
			if e.of != 'l' || e.line.Alarm != 0 {
				continue
			}
			if by := seen[k]; by != "" {
				w.fail("REPEATED: order %+v was committed with %s and with %s", k.order, by, t.id)
			}
			seen[k] = t.id
		}
	}
}
