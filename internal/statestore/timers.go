package statestore

import "bytes"

// timerIndex orders the timers of a table by time, then by key hash. The table
// is the truth: an entry here whose timer was cleared or set anew is stale, and
// is skipped when its turn comes. Entries are numbers, so a heap of millions
// costs the collector nothing.
type timerIndex struct{ heap []timerEntry }

type timerEntry struct {
	at   int64
	hash uint64
}

func (e timerEntry) before(o timerEntry) bool {
	return e.at < o.at || e.at == o.at && e.hash < o.hash
}

// TimerSet sets the timer of the key in hand, in place of what was set before.
func (t *Table) TimerSet(at int64) {
	if old, ok := Get[int64](t); ok && old == at {
		return
	}
	Set(t, at)
	t.timers.push(timerEntry{at, t.s.key.hash})
	if n := len(t.timers.heap); n > 64 && n > 4*t.sp.entries {
		t.rebuildTimers()
	}
}

// TimerAt is when the timer of the key in hand is set to fire.
func (t *Table) TimerAt() (at int64, ok bool) { return Get[int64](t) }

// NextTimer is when the earliest timer of a domain is due.
func (s *Store) NextTimer(d TimeDomain) (at int64, ok bool) {
	t, _ := s.nextTimer(d)
	if t == nil {
		return 0, false
	}
	return t.timers.heap[0].at, true
}

// Due takes the earliest timer of a domain that is due at now off its table,
// and takes its key in hand. Timers fire by time, then key hash, then order of
// declaration, whatever the order in which they were set.
func (s *Store) Due(d TimeDomain, now int64) (t *Table, at int64, ok bool) {
	t, p := s.nextTimer(d)
	if t == nil || t.timers.heap[0].at > now {
		return nil, 0, false
	}
	e := t.timers.pop()
	s.takeKey(t.sp, p.p, p.off)
	t.point(p.p, p.slot, p.off)
	t.Delete()
	return t, e.at, true
}

// nextTimer finds the earliest timer of a domain and removes stale entries in
// front of it.
func (s *Store) nextTimer(d TimeDomain) (first *Table, at cursor) {
	for _, t := range s.tables {
		if t.timers == nil || t.decl.Domain != d {
			continue
		}
		c, ok := t.firstTimer()
		if ok && (first == nil || t.timers.heap[0].before(first.timers.heap[0])) {
			first, at = t, c
		}
	}
	return first, at
}

// firstTimer drops stale entries until the first one is that of a timer, and
// returns where that is.
func (t *Table) firstTimer() (cursor, bool) {
	for len(t.timers.heap) > 0 {
		e := t.timers.heap[0]
		if c, ok := t.findTimer(e); ok {
			return c, true
		}
		t.timers.pop()
	}
	return cursor{}, false
}

// findTimer finds the key with this hash whose timer is set to this time: the
// least one, should several keys share a hash.
func (t *Table) findTimer(e timerEntry) (found cursor, ok bool) {
	d, x := t.dir(e.hash)
	p := d.at(x)
	var least []byte
	tag := byte(tagOf(e.hash))
	mask := p.groups() - 1
	g := uintptr(e.hash) & mask
	for range mask + 1 {
		for j := range groupSlots {
			slot := int(g)*groupSlots + j
			if t.sp.groupAt(p, g).ctrlOf(j) != tag {
				continue
			}
			off := t.sp.offset(slot)
			if *(*int64)(t.sp.tail(p, slot, off)) != e.at || t.sp.hashAt(p.at(off)) != e.hash {
				continue
			}
			enc := t.sp.keyAt(t.sp.arena.chunks, p.at(off))
			if !ok || bytes.Compare(enc, least) < 0 {
				found, least, ok = cursor{p: p, off: off, slot: slot}, enc, true
			}
		}
		if hasEmpty(t.sp.groupAt(p, g).ctrl) {
			break
		}
		g = (g + 1) & mask
	}
	return found, ok
}

// takeKey takes the key in a slot in hand.
func (s *Store) takeKey(sp *space, p *page, off uintptr) {
	slot := p.at(off)
	hash := sp.hashAt(slot)
	s.key.setEncoded(&sp.key, sp.keyAt(sp.arena.chunks, slot), hash)
	s.seq++
	s.keyed = true
}

// rebuildTimers makes the index from the table.
func (t *Table) rebuildTimers() {
	h := t.timers.heap[:0]
	for i := range t.dirs {
		t.dirs[i].each(func(p *page) bool {
			t.sp.liveSlots(p, func(slot int, off uintptr) {
				h = append(h, timerEntry{*(*int64)(t.sp.tail(p, slot, off)), t.sp.hashAt(p.at(off))})
			})
			return true
		})
	}
	t.timers.heap = h
	for i := len(h)/2 - 1; i >= 0; i-- {
		t.timers.down(i)
	}
}

func (ti *timerIndex) push(e timerEntry) {
	ti.heap = append(ti.heap, e)
	h := ti.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (ti *timerIndex) pop() timerEntry {
	h := ti.heap
	e := h[0]
	h[0] = h[len(h)-1]
	ti.heap = h[:len(h)-1]
	ti.down(0)
	return e
}

func (ti *timerIndex) down(i int) {
	h := ti.heap
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
