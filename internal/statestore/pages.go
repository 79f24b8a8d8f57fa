package statestore

// alloc takes a page from the pool, with all of its slots empty. It is writable
// in this version.
func (sp *space) alloc(class uint8) *page {
	p := sp.allocDirty(class)
	for i := range p.groups() {
		*sp.groupAt(p, i) = group{own: sp.s.version}
	}
	return p
}

// allocDirty is alloc without emptying the groups.
func (sp *space) allocDirty(class uint8) *page {
	var p *page
	pool := &sp.pool[class]
	size := int64(sp.pageSize(class))
	if len(*pool) == 0 {
		sp.s.reapSome(reapSlice)
	}
	if n := len(*pool); n > 0 {
		p, *pool = (*pool)[n-1], (*pool)[:n-1]
		sp.s.mem.pool.Add(-size)
	} else {
		p = sp.newPage(class)
	}
	sp.s.mem.pages.Add(size)
	sp.pageCount++
	p.own = sp.s.version
	p.overlay.Store(0)
	p.marks[0].Store(0)
	p.marks[1].Store(0)
	p.depth, p.live, p.dead = 0, 0, 0
	p.id = 0
	if sp.pages != nil {
		sp.nameID(p)
	}
	return p
}

// nameID gives a page an id.
func (sp *space) nameID(p *page) {
	if n := len(sp.freeIDs); n > 0 {
		p.id, sp.freeIDs = sp.freeIDs[n-1], sp.freeIDs[:n-1]
		sp.pages[p.id] = p
		return
	}
	p.id = uint32(len(sp.pages))
	sp.pages = append(sp.pages, p)
}

// discard takes a page out of use: now if no snapshot is to read it, else when
// those that may have ended.
func (sp *space) discard(p *page) {
	size := int64(sp.pageSize(p.class))
	sp.s.mem.pages.Add(-size)
	sp.pageCount--
	if p.own == sp.s.version || !sp.s.pending(p) {
		sp.recycle(p)
		return
	}
	sp.s.mem.retired.Add(size)
	sp.s.retirePage(sp, p)
}

// recycle puts a page that nobody reads into the pool.
func (sp *space) recycle(p *page) {
	if i := p.overlay.Load(); i != 0 {
		sp.overlays.release(sp.s, i-1)
		p.overlay.Store(0)
	}
	if p.id != 0 {
		sp.freeIDs = append(sp.freeIDs, p.id)
		p.id = 0
	}
	sp.s.mem.pool.Add(int64(sp.pageSize(p.class)))
	sp.pool[p.class] = append(sp.pool[p.class], p)
}

// absorb makes a page that no snapshot waits for writable in this version, and
// merges its overlay.
func (sp *space) absorb(p *page) {
	p.own = sp.s.version
	if i := p.overlay.Load(); i != 0 {
		sp.merge(p, sp.overlays.list[i-1])
		p.overlay.Store(0)
		sp.overlays.release(sp.s, i-1)
	}
}

// touch notes that a slot of a writable page is written.
func (sp *space) touch(g *group, slot int) {
	if g.own != sp.s.version {
		sp.roll(g)
	}
	g.cur |= 1 << (slot & 7)
}

// roll begins a version for a group. What its version changed is not dirty any
// more if a snapshot of that version or a later one is in a complete checkpoint.
func (sp *space) roll(g *group) {
	if sp.s.confirmed >= g.own {
		g.prev = 0
	} else {
		g.prev |= g.cur
	}
	g.cur, g.own = 0, sp.s.version
}

// clone makes a writable copy of a page that a snapshot waits for. The caller
// puts it in its place and discards p.
func (sp *space) clone(p *page) *page {
	sp.clones++
	c := sp.allocDirty(p.class)
	c.depth, c.live, c.dead = p.depth, p.live, p.dead
	copy(sp.body(c), sp.body(p))
	if i := p.overlay.Load(); i != 0 {
		sp.merge(c, sp.overlays.list[i-1])
	}
	return c
}

// exclusive returns p, or a clone of it, writable in this version. If it is a
// clone, p was discarded and the caller must put the clone in its place.
func (sp *space) exclusive(p *page) *page {
	switch {
	case p.own == sp.s.version:
		return p
	case p == absent:
		return sp.alloc(0)
	case !sp.s.pending(p):
		sp.absorb(p)
		return p
	}
	c := sp.clone(p)
	sp.discard(p)
	return c
}

// exclusiveIn is exclusive for a page in a directory.
func (sp *space) exclusiveIn(d *dir, x uint64) *page {
	p := d.at(x)
	if p.own == sp.s.version {
		return p
	}
	c := sp.exclusive(p)
	if c != p {
		d.replace(sp.s, x, c)
	}
	return c
}
