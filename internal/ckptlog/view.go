package ckptlog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// View is what a log says up to its slot Tail.
type View struct {
	Tail uint64
	State
}

// State is the history of a job, folded. A Floor carries it. Its slices are
// sorted, so that equal histories have equal bytes.
type State struct {
	Job        string   `cbor:"1,keyasint"`
	JobID      [16]byte `cbor:"2,keyasint"`
	HashID     uint8    `cbor:"3,keyasint"`
	HashSeed   uint64   `cbor:"4,keyasint"`
	Generation uint64   `cbor:"5,keyasint"` // the slot of the newest Takeover; 0: there was none
	Owner      string   `cbor:"6,keyasint,omitempty"`

	Lineage  uint64    `cbor:"7,keyasint"` // the branch that is being continued
	Lineages []Lineage `cbor:"8,keyasint"` // ascending

	// LastID is the highest id that the log has seen, disposed and voided ones
	// included.
	LastID       checkpoint.ID `cbor:"9,keyasint"`
	Checkpoints  []Retained    `cbor:"10,keyasint"` // not disposed, of all lineages, ascending by id
	Pins         []Pin         `cbor:"11,keyasint"` // by name
	Reservations []Reservation `cbor:"12,keyasint"` // the newest of each split, by source and split
	Resolves     []Resolve     `cbor:"13,keyasint"` // in the order of the log

	// LastCommitted is the highest id that was Committed, of all lineages.
	LastCommitted checkpoint.ID `cbor:"14,keyasint"`
}

// Lineage is a branch of a job's history.
type Lineage struct {
	ID     uint64        `cbor:"1,keyasint"`           // slot of the Restore that began it; 0: Genesis
	From   checkpoint.ID `cbor:"2,keyasint,omitempty"` // where it left Parent; 0: it began fresh
	Parent uint64        `cbor:"3,keyasint,omitempty"`
}

// Retained is a checkpoint that was not disposed.
type Retained struct {
	Checkpoint
	Committed bool   `cbor:"20,keyasint,omitempty"` // every sink has committed what it names
	Slot      uint64 `cbor:"21,keyasint"`
}

// clone returns a View that shares nothing that folding changes.
func (v View) clone() View {
	v.Lineages = slices.Clone(v.Lineages)
	v.Checkpoints = slices.Clone(v.Checkpoints)
	v.Pins = slices.Clone(v.Pins)
	v.Reservations = slices.Clone(v.Reservations)
	v.Resolves = slices.Clone(v.Resolves)
	return v
}

// Latest returns the checkpoint from which the job goes on: the one with the
// highest id of the current lineage, or, before that has any, the one that it
// began from. It is not the checkpoint whose record is the last.
func (v View) Latest() (Retained, bool) {
	for i := len(v.Checkpoints) - 1; i >= 0; i-- {
		if v.Checkpoints[i].Lineage == v.Lineage {
			return v.Checkpoints[i], true
		}
	}
	if l := v.lineage(v.Lineage); l.From != 0 {
		return v.ByID(l.From)
	}
	return Retained{}, false
}

// ByID returns a checkpoint that was not disposed.
func (v View) ByID(id checkpoint.ID) (Retained, bool) {
	i, ok := v.find(id)
	if !ok {
		return Retained{}, false
	}
	return v.Checkpoints[i], true
}

func (v View) find(id checkpoint.ID) (int, bool) {
	return slices.BinarySearchFunc(v.Checkpoints, id, func(c Retained, id checkpoint.ID) int { return cmp.Compare(c.ID, id) })
}

// NextID is above every id in the log.
func (v View) NextID() checkpoint.ID { return v.LastID + 1 }

// Retained returns the checkpoints that were not disposed, ascending by id.
func (v View) Retained() []Retained { return slices.Clone(v.Checkpoints) }

// Uncommitted returns the checkpoints that name committables which some sink has
// not confirmed, ascending by id.
func (v View) Uncommitted() []Retained {
	var cs []Retained
	for _, c := range v.Checkpoints {
		if c.Committables && !c.Committed {
			cs = append(cs, c)
		}
	}
	return cs
}

// CommittedAbove says whether a sink may have committed output of a checkpoint
// above id: a restore of id would repeat it.
func (v View) CommittedAbove(id checkpoint.ID) bool { return v.LastCommitted > id }

// AcrossFresh says whether a fresh start lies between c and where the job stands
// now: how far AtMostOnce sources had emitted behind c was forgotten by it.
func (v View) AcrossFresh(c Retained) bool { return v.root(c.Lineage) != v.root(v.Lineage) }

// root is the lineage that began fresh which another one descends from.
func (v View) root(id uint64) uint64 {
	for l := v.lineage(id); l.From != 0; l = v.lineage(id) {
		id = l.Parent
	}
	return id
}

// Pinned says whether a pin holds the checkpoint.
func (v View) Pinned(id checkpoint.ID) bool {
	return slices.ContainsFunc(v.Pins, func(p Pin) bool { return p.ID == id })
}

// Disposable returns what need not be kept, ascending: all but the retain newest
// of the branch that is continued, the pinned, and those with committables that
// are not Committed. The newest is always kept.
func (v View) Disposable(retain int) []checkpoint.ID {
	latest, _ := v.Latest()
	kept := 0
	var ids []checkpoint.ID
	for i := len(v.Checkpoints) - 1; i >= 0; i-- {
		c := v.Checkpoints[i]
		if v.onBranch(c, v.Lineage, latest.ID) && kept < max(retain, 1) {
			kept++
			continue
		}
		if v.hold(c.ID) == "" {
			ids = append(ids, c.ID)
		}
	}
	slices.Reverse(ids)
	return ids
}

// Continues says whether the job goes on from c: it is of the current lineage,
// or an ancestor of where that began.
func (v View) Continues(c Retained) bool {
	latest, ok := v.Latest()
	return ok && v.onBranch(c, v.Lineage, latest.ID)
}

// hold says why a retained checkpoint may not be disposed; "" if it may.
func (v View) hold(id checkpoint.ID) string {
	c, there := v.ByID(id)
	latest, _ := v.Latest()
	switch {
	case !there:
		return "it is not in the log"
	case id == latest.ID:
		return "it is the newest"
	case c.Committables && !c.Committed:
		return "its sinks have not committed it"
	case v.Pinned(id):
		return "it is pinned"
	}
	return ""
}

// Reservation returns how far a split may have been emitted.
func (v View) Reservation(source, split string) (Reservation, bool) {
	i, ok := v.findReservation(Reservation{Source: source, Split: split})
	if !ok {
		return Reservation{}, false
	}
	return v.Reservations[i], true
}

func (v View) findReservation(r Reservation) (int, bool) {
	return slices.BinarySearchFunc(v.Reservations, r, func(a, b Reservation) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Split, b.Split))
	})
}

// onBranch says whether c is id or one of its ancestors, where id is of lineage.
func (v View) onBranch(c Retained, lineage uint64, id checkpoint.ID) bool {
	for {
		if c.Lineage == lineage {
			return c.ID <= id
		}
		l := v.lineage(lineage)
		if l.From == 0 {
			return false
		}
		id, lineage = min(id, l.From), l.Parent
	}
}

func (v View) lineage(id uint64) Lineage {
	i, ok := slices.BinarySearchFunc(v.Lineages, id, func(l Lineage, id uint64) int { return cmp.Compare(l.ID, id) })
	if !ok {
		panic(fmt.Sprintf("ckptlog: lineage %d is not in the log", id))
	}
	return v.Lineages[i]
}
