package checkpoint

import (
	"fmt"
	"slices"
)

// alignment is one id on its way from its first barrier to Begin.
type alignment struct {
	barrier     Barrier
	first, last int64
	delivered   []bool  // per channel
	arrived     []int64 // per channel, when its barrier was handled
}

func (a *alignment) arrive(ch int, now int64) {
	a.delivered[ch] = true
	a.arrived[ch] = now
	a.last = now
}

// alignment returns the one of a barrier, and whether it was started now.
func (b *Barriers) alignment(bar Barrier, now int64) (*alignment, bool) {
	i, ok := slices.BinarySearchFunc(b.aligning, bar.ID, compareAlignment)
	if ok {
		return b.aligning[i], false
	}
	a := &alignment{
		barrier: bar, first: now, last: now,
		delivered: make([]bool, len(b.channels)),
		arrived:   make([]int64, len(b.channels)),
	}
	b.aligning = slices.Insert(b.aligning, i, a)
	return a, true
}

func compareAlignment(a *alignment, id ID) int {
	switch {
	case a.barrier.ID < id:
		return -1
	case a.barrier.ID > id:
		return 1
	}
	return 0
}

func (b *Barriers) isAligning(id ID) bool {
	_, ok := slices.BinarySearchFunc(b.aligning, id, compareAlignment)
	return ok
}

// missedBy returns the ids below id whose barrier a channel has not delivered.
func (b *Barriers) missedBy(ch int, id ID) []ID {
	var ids []ID
	for _, a := range b.aligning {
		if a.barrier.ID < id && !a.delivered[ch] {
			ids = append(ids, a.barrier.ID)
		}
	}
	return ids
}

// overtaken returns a newer barrier that a channel delivered without having
// delivered id: then id never comes on that channel.
func (b *Barriers) overtaken(id ID) (ID, bool) {
	if b.isAligning(id) {
		return 0, false // missedBy has seen to it
	}
	for _, c := range b.channels {
		if c.last > id {
			return c.last, true
		}
	}
	return 0, false
}

// stale says whether an id was begun or given up before.
func (b *Barriers) stale(id ID) bool {
	return id <= b.begun || b.aborted.has(id) && !b.isAligning(id)
}

// subsume gives up an id for a newer barrier. It is a normal end of a
// checkpoint: nothing fails.
func (b *Barriers) subsume(id, newer ID) []Action {
	b.counters.Subsumed++
	return append([]Action{SendDecline{id, Subsumed, fmt.Sprintf("barrier %d came first", newer)}}, b.giveUp(id)...)
}

// aligned says whether every channel has delivered the barrier or has ended.
func (b *Barriers) aligned(a *alignment) bool {
	for ch, c := range b.channels {
		if !c.ended && !a.delivered[ch] {
			return false
		}
	}
	return true
}

// beginNext begins the oldest aligned id, one at a time. Ids below it still
// wait for a channel that this one does not wait for: such a channel has ended
// or has delivered the newer barrier, so invariant 4 has subsumed them before,
// and the oldest aligned id is the oldest of all.
func (b *Barriers) beginNext() []Action {
	if b.preparing != nil || len(b.aligning) == 0 {
		return nil
	}
	a := b.aligning[0]
	if !b.aligned(a) {
		return nil
	}
	b.aligning = slices.Delete(b.aligning, 0, 1)
	b.preparing, b.begun = a, a.barrier.ID
	b.aborted.dropUpTo(b.begun)
	return []Action{Begin{Barrier: a.barrier, First: a.first, Last: a.last, Arrived: a.arrived}}
}

// giveUp ends the alignment of an id that was not begun, if there is one, and
// remembers the id.
func (b *Barriers) giveUp(id ID) []Action {
	b.aligning = slices.DeleteFunc(b.aligning, func(a *alignment) bool { return a.barrier.ID == id })
	b.aborted.add(id)
	return append([]Action{ForwardCancel{id}}, b.unblock(id)...)
}

func (b *Barriers) unblock(id ID) []Action {
	var as []Action
	for ch := range b.channels {
		if b.channels[ch].blocked == id {
			b.channels[ch].blocked = 0
			as = append(as, Unblock{ch, id})
		}
	}
	return as
}

func (b *Barriers) blocks(id ID) bool {
	return slices.ContainsFunc(b.channels, func(c channelState) bool { return c.blocked == id })
}

// take removes an id from those taken, and says whether it was there.
func (b *Barriers) take(id ID) bool {
	i, ok := slices.BinarySearch(b.taken, id)
	if ok {
		b.taken = slices.Delete(b.taken, i, i+1)
	}
	return ok
}

// abortedIDs is the bounded set of ids that were given up above the last begun
// one. When it is full the least id leaves, and it and all below count as given
// up: by then the coordinator has given up a whole set of later ids, and only
// two of its ids are ever pending.
type abortedIDs struct {
	ids   []ID // ascending
	floor ID
}

const maxAbortedIDs = 128

func (s *abortedIDs) has(id ID) bool {
	if id <= s.floor {
		return true
	}
	_, ok := slices.BinarySearch(s.ids, id)
	return ok
}

func (s *abortedIDs) add(id ID) {
	i, ok := slices.BinarySearch(s.ids, id)
	if ok {
		return
	}
	s.ids = slices.Insert(s.ids, i, id)
	if len(s.ids) > maxAbortedIDs {
		s.floor = s.ids[0]
		s.ids = slices.Delete(s.ids, 0, 1)
	}
}

func (s *abortedIDs) dropUpTo(id ID) {
	n, _ := slices.BinarySearch(s.ids, id+1)
	s.ids = slices.Delete(s.ids, 0, n)
}
