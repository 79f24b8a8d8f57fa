package statestore

import "unsafe"

// tail returns the memory of an entry's tail for reading. It is valid until
// the page or its overlay changes.
func (sp *space) tail(p *page, slot int, off uintptr) unsafe.Pointer {
	if sp.groupOf(p, slot).overlaid>>(slot&7)&1 != 0 {
		o := sp.overlays.list[p.overlay.Load()-1]
		return o.tail(o.find(slot), sp.tailSize)
	}
	return p.at(off + sp.keySize)
}

// writable returns the memory of an entry's tail for writing, and the page in
// which the entry is now: another one if p had to be cloned, which the caller
// puts in its place. The tail keeps its content.
func (sp *space) writable(p *page, slot int, off uintptr) (unsafe.Pointer, *page) {
	if p.own != sp.s.version {
		if sp.s.pending(p) {
			if t := sp.overlay(p, slot, off); t != nil {
				return t, p
			}
			c := sp.clone(p)
			sp.discard(p)
			p = c
		} else {
			sp.absorb(p)
		}
	}
	sp.touch(sp.groupOf(p, slot), slot)
	return p.at(off + sp.keySize), p
}

// place takes an empty slot of an exclusive page, which has one within its
// capacity, for a key with a hash, and zeroes it: what a recycled page held
// there is not the new entry's.
func (sp *space) place(p *page, hash uint64) (slot int, off uintptr) {
	mask := p.groups() - 1
	i := uintptr(hash) & mask
	for !hasEmpty(sp.groupAt(p, i).ctrl) {
		i = (i + 1) & mask
	}
	g := sp.groupAt(p, i)
	slot = int(i)<<3 + firstEmpty(g.ctrl)
	off = sp.offset(slot)
	g.setCtrl(slot, byte(tagOf(hash)))
	clearMemory(p.at(off), sp.stride)
	p.live++
	return slot, off
}

// insert adds a key that is not in the directory and returns its slot, zeroed
// but for the key.
func (sp *space) insert(d *dir, k *key) (p *page, slot int, off uintptr) {
	x := sp.index(k.hash)
	for {
		p = sp.exclusiveIn(d, x)
		if q := sp.makeRoom(p); q == nil {
			sp.split(d, x, p)
			continue
		} else if q != p {
			d.replace(sp.s, x, q)
			sp.discard(p)
			p = q
		}
		slot, off = sp.insertAt(p, k)
		return p, slot, off
	}
}

// insertAt adds a key to an exclusive page with room.
func (sp *space) insertAt(p *page, k *key) (slot int, off uintptr) {
	if slot, off = sp.revive(p, k); off == 0 {
		slot, off = sp.place(p, k.hash)
		sp.storeKey(p.at(off), k)
	}
	sp.touch(sp.groupOf(p, slot), slot)
	sp.entries++
	return slot, off
}

// revive takes the slot in which k was deleted, if it is in p.
func (sp *space) revive(p *page, k *key) (slot int, off uintptr) {
	if p.dead == 0 {
		return -1, 0
	}
	mask := p.groups() - 1
	i := uintptr(k.hash) & mask
	for range mask + 1 {
		g := sp.groupAt(p, i)
		for j := range groupSlots {
			if g.ctrlOf(j) != ctrlDead {
				continue
			}
			slot := int(i)*groupSlots + j
			if off := sp.offset(slot); sp.equal(p.at(off), k) {
				g.setCtrl(slot, byte(tagOf(k.hash)))
				clearMemory(p.at(off+sp.keySize), sp.tailSize)
				p.dead--
				p.live++
				return slot, off
			}
		}
		if hasEmpty(g.ctrl) {
			break
		}
		i = (i + 1) & mask
	}
	return -1, 0
}

// makeRoom returns a page with the entries of the exclusive page p and a free
// slot: p itself, or one that takes its place; nil if p must be split.
func (sp *space) makeRoom(p *page) *page {
	if int(p.live)+int(p.dead) < capacity(p.class) {
		return p
	}
	class := p.class
	if int(p.dead) < capacity(class)/4 {
		if class == sp.full {
			return nil
		}
		class++
	}
	q := sp.alloc(class)
	q.depth = p.depth
	sp.moveAll(p, func(uint64) *page { return q })
	return q
}

// split divides the exclusive page p at the next bit of its index.
func (sp *space) split(d *dir, x uint64, p *page) {
	d.unshare(sp.s)
	if p.depth == d.depth() {
		d.deepen(sp.s)
	}
	var half [2]*page
	for i := range half {
		half[i] = sp.alloc(sp.full)
		half[i].depth = p.depth + 1
	}
	bit := 63 - p.depth
	sp.moveAll(p, func(hash uint64) *page { return half[sp.index(hash)>>(bit&63)&1] })
	x &^= 1 << bit
	d.fill(x, half[0].depth, half[0])
	d.fill(x|1<<bit, half[1].depth, half[1])
	sp.discard(p)
}

// moveAll puts the entries of p, which is exclusive and discarded afterwards,
// into other pages. Deleted entries end here: only full snapshots are taken,
// and those of the past do not see this page.
func (sp *space) moveAll(p *page, to func(hash uint64) *page) {
	for i := range p.groups() {
		g := sp.groupAt(p, i)
		if g.own != sp.s.version {
			sp.roll(g)
		}
		for j := range groupSlots {
			slot := int(i)*groupSlots + j
			switch c := g.ctrlOf(j); {
			case c >= ctrlLive:
				off := sp.offset(slot)
				hash := sp.hashAt(p.at(off))
				q := to(hash)
				s, o := sp.place(q, hash)
				copyMemory(q.at(o), p.at(off), sp.stride)
				h := sp.groupOf(q, s)
				h.cur |= g.cur >> j & 1 << (s & 7)
				h.prev |= g.prev >> j & 1 << (s & 7)
			case c == ctrlDead:
				sp.dropKey(p.at(sp.offset(slot)))
			}
		}
	}
}

// remove deletes an entry of an exclusive page. The slot keeps the key until
// its page is rebuilt, so that an increment can name what was deleted.
func (sp *space) remove(p *page, slot int, off uintptr) {
	sp.dropTail(p.at(off + sp.keySize))
	g := sp.groupOf(p, slot)
	g.setCtrl(slot, ctrlDead)
	sp.touch(g, slot)
	p.live--
	p.dead++
	sp.entries--
}
