package statestore

import (
	"unsafe"
)

// mapLayer keeps the maps of a map state, a map a key. A map's entries are in
// pages of their own, split by the hash of the sub-key: one small page, or a
// directory of pages. So one hot key deepens nobody's directory, and its
// entries are found without the others.
//
// The tail of a key in the table is a mapRoot. Pages and directories have ids,
// so that a frozen root finds what it found when it was frozen: a page or
// directory that a snapshot may see gets a new id when it is replaced.
type mapLayer struct {
	t       *Table
	sub     *space
	roots   []*dir // by id, from 1
	freeIDs []uint32
	key     key // the sub-key in hand
	timeOff uintptr
}

// mapRoot is the tail of a key that has a map.
type mapRoot struct {
	count uint32
	kind  uint32
	id    uint32
	_     uint32
}

const (
	rootPage = iota // id is that of a page in sub.pages
	rootDir         // id is that of a directory in roots
)

func newMapLayer(t *Table) *mapLayer {
	ml := &mapLayer{t: t, roots: make([]*dir, 1)}
	d := &t.decl
	tail := d.Value.size
	if d.TTL > 0 {
		ml.timeOff = (tail + 3) &^ 3
		tail = ml.timeOff + 4
	}
	ml.sub = newSpace(t.s, d.Sub, d.Sub.bind(t.s.cfg.Seed), t.sp.arena, tail)
	ml.sub.pages = make([]*page, 1)
	ml.sub.dropTail = t.dropValue
	return ml
}

// root returns the root of the map in hand for reading; nil if there is none.
func (ml *mapLayer) root() *mapRoot { return (*mapRoot)(ml.t.tail()) }

// page returns the page in which the sub-key in hand is or would be.
func (ml *mapLayer) page(r *mapRoot) *page {
	if r.kind == rootPage {
		return ml.sub.pages[r.id]
	}
	return ml.roots[r.id].at(ml.sub.index(ml.key.hash))
}

// tail returns the tail of the sub-key in hand for reading; nil if it is not
// there or has expired.
func (ml *mapLayer) tail() unsafe.Pointer {
	r := ml.root()
	if r == nil {
		return nil
	}
	p := ml.page(r)
	slot, off := ml.sub.find(p, p.mask(), &ml.key)
	if off == 0 {
		return nil
	}
	tail := ml.sub.tail(p, slot, off)
	if ml.expired(tail) {
		return nil
	}
	return tail
}

func (ml *mapLayer) expired(tail unsafe.Pointer) bool {
	s := ml.t.s
	return ml.timeOff != 0 && s.expired(*(*uint32)(unsafe.Add(tail, ml.timeOff)), ml.t.decl.TTL, s.cfg.Now())
}

// slot returns the tail of the sub-key in hand for writing, and adds the entry,
// zeroed, if it is not there.
func (ml *mapLayer) slot() unsafe.Pointer {
	tail := ml.writable()
	if ml.timeOff != 0 {
		*(*uint32)(unsafe.Add(tail, ml.timeOff)) = ml.t.s.nowSeconds()
	}
	return tail
}

func (ml *mapLayer) writable() unsafe.Pointer {
	r := ml.root()
	if r == nil {
		p := ml.sub.alloc(0)
		_, off := ml.sub.insertAt(p, &ml.key)
		*(*mapRoot)(ml.t.slot()) = mapRoot{count: 1, kind: rootPage, id: p.id}
		return p.at(off + ml.sub.keySize)
	}
	old := *r
	p := ml.page(&old)
	slot, off := ml.sub.find(p, p.mask(), &ml.key)
	if off == 0 {
		return ml.insert(old, p)
	}
	tail, q := ml.sub.writable(p, slot, off)
	if q != p {
		ml.replace(old, q, 0)
	}
	return tail
}

// replace puts p in place of the page in which the sub-key in hand was, and
// adds to the count.
func (ml *mapLayer) replace(r mapRoot, p *page, added int) {
	next := r
	if r.kind == rootPage {
		next.id = p.id
	} else {
		next.id = ml.unshare(r.id)
		d := ml.roots[next.id]
		if x := ml.sub.index(ml.key.hash); d.at(x) != p {
			d.replace(ml.t.s, x, p)
		}
	}
	next.count = uint32(int(r.count) + added)
	if next != r {
		*(*mapRoot)(ml.t.slot()) = next
	}
}

// insert adds the sub-key in hand, which would be in p.
func (ml *mapLayer) insert(r mapRoot, p *page) unsafe.Pointer {
	sub := ml.sub
	if r.kind == rootPage {
		p = sub.exclusive(p)
		if q := sub.makeRoom(p); q != nil {
			if q != p {
				sub.discard(p)
			}
			_, off := sub.insertAt(q, &ml.key)
			ml.replace(r, q, 1)
			return q.at(off + sub.keySize)
		}
		r.kind = rootDir
		r.id = ml.addRoot(&dir{pages: []*page{p}, shift: 63, mask: p.mask(), own: ml.t.s.version})
	} else {
		r.id = ml.unshare(r.id)
	}
	q, _, off := sub.insert(ml.roots[r.id], &ml.key)
	r.count++
	*(*mapRoot)(ml.t.slot()) = r
	return q.at(off + sub.keySize)
}

// remove deletes the sub-key in hand.
func (ml *mapLayer) remove() {
	r := ml.root()
	if r == nil {
		return
	}
	old := *r
	p := ml.page(&old)
	slot, off := ml.sub.find(p, p.mask(), &ml.key)
	if off == 0 {
		return
	}
	if old.count == 1 {
		ml.t.Delete()
		return
	}
	q := ml.sub.exclusive(p)
	ml.sub.remove(q, slot, off)
	ml.replace(old, q, -1)
}

func (ml *mapLayer) addRoot(d *dir) uint32 {
	if n := len(ml.freeIDs); n > 0 {
		id := ml.freeIDs[n-1]
		ml.freeIDs = ml.freeIDs[:n-1]
		ml.roots[id] = d
		return id
	}
	ml.roots = append(ml.roots, d)
	return uint32(len(ml.roots) - 1)
}

// unshare returns the id of a directory with the content of id that may be
// changed in this version.
func (ml *mapLayer) unshare(id uint32) uint32 {
	d, s := ml.roots[id], ml.t.s
	if d.own == s.version || !s.snapshotLive() {
		d.own = s.version
		return id
	}
	c := ml.addRoot(&dir{pages: append([]*page(nil), d.pages...), shift: d.shift, mask: d.mask, own: s.version})
	s.retire(ml, id)
	return c
}

// free makes the id of a directory that nobody reads available.
func (ml *mapLayer) free(id uint32) {
	ml.roots[id] = nil
	ml.freeIDs = append(ml.freeIDs, id)
}

// dropTail lets go of a whole map.
func (ml *mapLayer) dropTail(tail unsafe.Pointer) {
	r := (*mapRoot)(tail)
	drop := func(p *page) bool {
		ml.dropPage(p)
		return true
	}
	if r.kind == rootPage {
		drop(ml.sub.pages[r.id])
	} else {
		ml.roots[r.id].each(drop)
		ml.t.s.retire(ml, r.id)
	}
}

func (ml *mapLayer) dropPage(p *page) {
	sub := ml.sub
	for slot := range groupSlots << p.class {
		c := sub.groupOf(p, slot).ctrlOf(slot)
		if c == ctrlEmpty {
			continue
		}
		off := sub.offset(slot)
		sub.dropKey(p.at(off))
		if c >= ctrlLive {
			// The current tail may be in the overlay; what dropTail clears in the
			// page itself a snapshot may still read, so it works on a copy.
			ml.t.decl.Value.dropCopy(sub.arena, sub.tail(p, slot, off))
			sub.entries--
		}
	}
	sub.discard(p)
}
