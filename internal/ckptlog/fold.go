package ckptlog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// check says why r may not stand in slot, after what v holds; nil if it may. An
// owner asks it before it appends; a reader for whom it fails has found damage,
// since owners that keep the rules cannot have written such a log.
func (v View) check(slot uint64, r Record) error {
	if first := slot == 0; first != (r.Kind() == KindGenesis) {
		return fmt.Errorf("genesis stands in slot 0, and there alone")
	}
	switch r := r.(type) {
	case Checkpoint:
		return v.checkCheckpoint(r)
	case Committed:
		if r.ID > v.LastID || !v.hasLineage(r.Lineage) {
			return fmt.Errorf("checkpoint %d of lineage %d is committed but was never logged", r.ID, r.Lineage)
		}
	case Pin:
		if _, there := v.ByID(r.ID); !there {
			return fmt.Errorf("checkpoint %d is pinned but is not in the log, or was disposed", r.ID)
		}
	case Restore:
		if r.From == 0 {
			return nil
		}
		if c, there := v.ByID(r.From); !there || c.Lineage != r.Lineage {
			return fmt.Errorf("checkpoint %d of lineage %d is restored but is not in the log, or was disposed", r.From, r.Lineage)
		}
	case Resolve:
		if r.Decision != CommitIt && r.Decision != RollBack {
			return fmt.Errorf("%s about committable %q", r.Decision, r.Committable)
		}
	case Dispose:
		for _, id := range r.IDs {
			if why := v.hold(id); why != "" {
				return fmt.Errorf("checkpoint %d is disposed, but %s", id, why)
			}
		}
	case Floor:
		return r.State.follows(v)
	}
	return nil
}

func (v View) checkCheckpoint(c Checkpoint) error {
	switch {
	case c.ID <= v.LastID:
		return fmt.Errorf("checkpoint %d is not above %d, the highest in the log", c.ID, v.LastID)
	case c.Epoch.Generation != v.Generation:
		return fmt.Errorf("checkpoint %d is of generation %d, but the log is owned by generation %d", c.ID, c.Epoch.Generation, v.Generation)
	case c.Lineage != v.Lineage:
		return fmt.Errorf("checkpoint %d is of lineage %d, but the log goes on with lineage %d", c.ID, c.Lineage, v.Lineage)
	}
	return nil
}

// follows says why s cannot replace what v holds.
func (s State) follows(v View) error {
	switch {
	case s.Job != v.Job || s.JobID != v.JobID:
		return fmt.Errorf("a floor of job %q in the log of job %q", s.Job, v.Job)
	case s.Generation != v.Generation || s.LastID != v.LastID || s.Lineage != v.Lineage:
		return fmt.Errorf("a floor with generation %d, lineage %d, last id %d over %d, %d, %d",
			s.Generation, s.Lineage, s.LastID, v.Generation, v.Lineage, v.LastID)
	}
	return s.whole()
}

// whole says what in s does not hang together: View relies on it, and a reader
// begins with a Floor that it has nothing to compare to.
func (s State) whole() error {
	known := map[uint64]bool{}
	for _, l := range s.Lineages {
		if known[l.ID] || l.From != 0 && !known[l.Parent] {
			return fmt.Errorf("lineage %d has no parent %d before it", l.ID, l.Parent)
		}
		known[l.ID] = true
	}
	if !known[s.Lineage] {
		return fmt.Errorf("lineage %d is continued but was never begun", s.Lineage)
	}
	last := checkpoint.ID(0)
	for _, c := range s.Checkpoints {
		if c.ID <= last || c.ID > s.LastID || !known[c.Lineage] {
			return fmt.Errorf("checkpoint %d of lineage %d is out of place", c.ID, c.Lineage)
		}
		last = c.ID
	}
	return nil
}

func (v View) hasLineage(id uint64) bool {
	return slices.ContainsFunc(v.Lineages, func(l Lineage) bool { return l.ID == id })
}

// fold adds an entry that check admits.
func (v *View) fold(e Entry) {
	v.Tail = e.Slot
	switch r := e.Record.(type) {
	case Genesis:
		v.Job, v.JobID, v.HashID, v.HashSeed = r.Job, r.JobID, r.HashID, r.HashSeed
		v.Lineages = []Lineage{{}}
	case Takeover:
		v.Generation, v.Owner = e.Slot, r.Owner
	case Checkpoint:
		v.LastID = r.ID
		v.Checkpoints = append(v.Checkpoints, Retained{Checkpoint: r, Slot: e.Slot})
	case Committed:
		v.commit(r)
	case Reserve:
		v.reserve(r)
	case Pin:
		v.unpin(r.Name)
		v.Pins = append(v.Pins, r)
		slices.SortFunc(v.Pins, func(a, b Pin) int { return strings.Compare(a.Name, b.Name) })
	case Unpin:
		v.unpin(r.Name)
	case Restore:
		v.Lineage = e.Slot
		v.Lineages = append(v.Lineages, Lineage{ID: e.Slot, From: r.From, Parent: r.Lineage})
		if r.From == 0 {
			v.Reservations = nil
		}
	case Resolve:
		v.Resolves = append(v.Resolves, r)
	case Dispose:
		v.Checkpoints = slices.DeleteFunc(v.Checkpoints, func(c Retained) bool { return slices.Contains(r.IDs, c.ID) })
	case Void:
		v.LastID = max(v.LastID, r.ID)
	case Floor:
		v.State = r.State
	}
}

// commit marks the checkpoint and its ancestors: what a sink confirmed for one
// holds all that it had not confirmed before.
func (v *View) commit(r Committed) {
	v.LastCommitted = max(v.LastCommitted, r.ID)
	for i, c := range v.Checkpoints {
		if v.onBranch(c, r.Lineage, r.ID) {
			v.Checkpoints[i].Committed = true
		}
	}
}

func (v *View) reserve(r Reserve) {
	for _, s := range r.Splits {
		if i, ok := v.findReservation(s); ok {
			v.Reservations[i] = s
		} else {
			v.Reservations = slices.Insert(v.Reservations, i, s)
		}
	}
}

func (v *View) unpin(name string) {
	v.Pins = slices.DeleteFunc(v.Pins, func(p Pin) bool { return p.Name == name })
}

// voids is the id that giving r up voids.
func voids(r Record) checkpoint.ID {
	if c, ok := r.(Checkpoint); ok {
		return c.ID
	}
	return 0
}
