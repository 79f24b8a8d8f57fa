package statestore

import "unsafe"

// sweeper goes through the pages of a table by hand: it removes entries that
// are dead by their TTL, and moves what is alive out of chunks that are mostly
// garbage. It passes over pages that a snapshot still waits for: to clone them
// would cost more than what it frees, and the next pass comes by again.
type sweeper struct {
	dir  int
	x    uint64 // index in dir of the next page
	pass int
}

// Sweep does n pages of background work for each state that has some. It runs
// by itself whenever a key is let go of; calling it more often frees sooner.
func (s *Store) Sweep(n int) {
	s.reap()
	for _, t := range s.tables {
		t.sp.arena.retry = 0
		if t.decl.TTL > 0 || t.sp.arena.compacts() {
			t.sweep(n)
		}
	}
}

// sweepSome does the background work that falls due with the work since the
// last time.
func (s *Store) sweepSome() {
	for _, t := range s.tables {
		if a := t.sp.arena; a.compacts() {
			t.sweep(a.due(t.sp.pageCount))
		} else if t.decl.TTL > 0 {
			t.sweep(1)
		}
	}
}

const maxSweep = 64 // pages at once

// due is how many of the pages must be swept now for the pass to end before as
// much garbage is made as half of what is alive.
func (a *arena) due(pages int) int {
	n := int(int64(pages)*a.added*2/max(a.live, 1<<20)) + 1
	a.added = 0
	return min(n, maxSweep)
}

// compacts says whether a pass over the chunks is under way, and begins one if
// more than half of the bytes in them are garbage.
func (a *arena) compacts() bool {
	if a.compacting || a.held < a.s.minCompact || a.held < 2*a.live || a.held < a.retry {
		return a.compacting
	}
	for id := range a.use {
		u := &a.use[id]
		u.victim = u.used > 0 && uint32(id) != a.open && 2*int(u.live) < len(a.chunks[id])
		a.compacting = a.compacting || u.victim
	}
	a.added, a.before = 0, a.held
	if !a.compacting {
		a.retry = a.held + 1
	}
	return a.compacting
}

// endPass ends a pass over the chunks. If it freed little, for snapshots held up
// too many pages, the next one begins when there is more to gain.
func (a *arena) endPass() {
	if !a.compacting {
		return
	}
	a.compacting = false
	a.retry = 0
	if a.held > a.before-a.before/8 {
		a.retry = a.held + a.held/8
	}
	for i := range a.use {
		a.use[i].victim = false
	}
}

func (t *Table) sweep(n int) {
	t.cur.seq = 0
	sw := &t.sweeper
	for ; n > 0; n-- {
		d := &t.dirs[sw.dir]
		p := d.at(sw.x)
		if p != absent {
			if p.own == t.s.version || !t.s.pending(p) {
				t.sweepPage(p)
			}
			if sw.x += 1 << (63 - p.depth) << 1; sw.x != 0 && p.depth > 0 {
				continue
			}
		}
		sw.x = 0
		if sw.dir++; sw.dir == subDirs {
			sw.dir = 0
			sw.pass++
			t.sp.arena.endPass()
		}
	}
}

// sweepPage sweeps a page that no snapshot waits for.
func (t *Table) sweepPage(p *page) {
	if p.own != t.s.version {
		t.sp.absorb(p)
	}
	now := t.s.cfg.Now()
	t.sp.liveSlots(p, func(slot int, off uintptr) {
		tail := p.at(off + t.keySize)
		switch {
		case t.timeOff != 0 && t.s.expired(*(*uint32)(unsafe.Add(tail, t.timeOff)), t.decl.TTL, now):
			t.sp.remove(p, slot, off)
		case t.maps != nil && t.maps.sweep((*mapRoot)(tail), t.sweeper.pass, now) == 0:
			t.sp.remove(p, slot, off)
		}
	})
	if t.sp.arena.compacting {
		t.sp.moveVictims(p, t.valueTexts)
	}
}

// valueTexts calls f with what the tail of an entry of the table refers to.
func (t *Table) valueTexts(tail unsafe.Pointer, f func(*textRef)) {
	if t.maps == nil && t.lists == nil && t.timers == nil {
		t.decl.Value.eachText(tail, f)
	}
}

// moveVictims moves what a writable page refers to in chunks that are given up.
// What the page says does not change, so nothing gets dirty.
func (sp *space) moveVictims(p *page, texts func(tail unsafe.Pointer, f func(*textRef))) {
	a := sp.arena
	for slot := range groupSlots << p.class {
		c := sp.groupOf(p, slot).ctrlOf(slot)
		if c == ctrlEmpty {
			continue
		}
		off := sp.offset(slot)
		if sp.key.form != inlineKey {
			a.moveKey((*keyRef)(p.at(off)))
		}
		if c >= ctrlLive {
			texts(p.at(off+sp.keySize), a.moveText)
		}
	}
}

func (a *arena) moveKey(r *keyRef) {
	if !a.use[r.chunk].victim {
		return
	}
	old := piece{r.chunk, r.off}
	b := sizedAt(a.chunks, old)
	moved := a.addSized(b)
	a.drop(old, 4+len(b))
	r.chunk, r.off = moved.chunk, moved.off
}

func (a *arena) moveText(r *textRef) {
	if r.len == 0 || !a.use[r.chunk].victim {
		return
	}
	moved := a.add(textAt(a.chunks, r))
	a.drop(r.piece, int(r.len))
	r.piece = moved
}

// mapSweep is how many pages of a large map a pass over the table sweeps.
const mapSweep = 64

// sweep sweeps a map whose root is in a writable page, and returns how many
// entries are left.
func (ml *mapLayer) sweep(r *mapRoot, pass int, now int64) uint32 {
	left := r.count
	if r.kind == rootPage {
		left -= ml.sweepPage(ml.sub.pages[r.id], now)
	} else {
		d := ml.roots[r.id]
		n := len(d.pages)
		for i := range min(mapSweep, n) {
			// A page that stands in several places is swept as often: it does no harm.
			left -= ml.sweepPage(d.pages[(pass*mapSweep+i)%n], now)
		}
	}
	if left > 0 {
		r.count = left
	}
	return left
}

// sweepPage sweeps a page of a map and returns how many entries it removed.
func (ml *mapLayer) sweepPage(p *page, now int64) (removed uint32) {
	s, sub := ml.t.s, ml.sub
	if p.own != s.version && s.pending(p) {
		return 0
	}
	if p.own != s.version {
		sub.absorb(p)
	}
	if ml.timeOff != 0 {
		sub.liveSlots(p, func(slot int, off uintptr) {
			if s.expired(*(*uint32)(p.at(off + sub.keySize + ml.timeOff)), ml.t.decl.TTL, now) {
				sub.remove(p, slot, off)
				removed++
			}
		})
	}
	if sub.arena.compacting {
		sub.moveVictims(p, ml.t.decl.Value.eachText)
	}
	return removed
}
