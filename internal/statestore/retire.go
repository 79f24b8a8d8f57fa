package statestore

// retireQueue holds what snapshots may still read though the table is done with
// it, in the order of retirement.
type retireQueue struct {
	items []retiredItem
	head  int
}

// retiredItem was retired in a version: snapshots of older versions may see it.
type retiredItem struct {
	version uint32
	sp      *space // with p
	p       *page
	owner   owner // with id
	id      uint32
}

// owner keeps things by id.
type owner interface{ free(id uint32) }

func (s *Store) retirePage(sp *space, p *page) {
	s.retired.items = append(s.retired.items, retiredItem{version: s.version, sp: sp, p: p})
}

// retire frees what an owner keeps under id once no snapshot that is live now is
// read any more.
func (s *Store) retire(o owner, id uint32) {
	if !s.snapshotLive() {
		o.free(id)
		return
	}
	s.retired.items = append(s.retired.items, retiredItem{version: s.version, owner: o, id: id})
}

// reapSlice is how many retired things are freed at the end of a slice.
const reapSlice = 128

// forget forgets released snapshots, and returns the version of the oldest one
// that is left.
func (s *Store) forget() (oldest uint32) {
	oldest = s.version
	for i, sn := range s.live {
		switch {
		case sn == nil:
		case sn.released.Load():
			s.live[i] = nil
		default:
			oldest = min(oldest, sn.version)
		}
	}
	return oldest
}

// reap frees what only snapshots could see that are released.
func (s *Store) reap() { s.reapSome(len(s.retired.items)) }

// reapSome frees at most n things. A snapshot may retire every page: to free
// them all in the next sync phase made that as long as the table is large, so it
// is done slice by slice, and when the pool has no page.
func (s *Store) reapSome(n int) {
	q := &s.retired
	if len(q.items) == 0 {
		return
	}
	oldest := s.forget()
	end := min(q.head+n, len(q.items))
	for ; q.head < end && q.items[q.head].version <= oldest; q.head++ {
		it := &q.items[q.head]
		if it.p != nil {
			s.mem.retired.Add(-int64(it.sp.pageSize(it.p.class)))
			it.sp.recycle(it.p)
		} else {
			it.owner.free(it.id)
		}
		*it = retiredItem{}
	}
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
}
