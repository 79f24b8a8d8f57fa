package statestore

import (
	"unsafe"
)

// overlay holds new tails for entries of a page that a snapshot is still to
// read: a redo log that is merged once the page is writable again. Without it,
// one changed entry would cost a copy of the whole page.
//
// Only the writer writes it, and only in the version own. A snapshot of own or
// later sees the page with the overlay; by then it is frozen, for the writer
// clones a page whose overlay is of an older version. A snapshot before own
// ignores it. The writer publishes the overlay by the atomic index in the page,
// after own was set, so that a reader may look at own at any time.
type overlay struct {
	own   uint32
	n     uint8
	slots [overlaySlots]uint8
}

const (
	// Six tails of 8 bytes and the header are one cache line. More make the writer
	// slower where it writes everything anew: the page is cloned in the end anyhow,
	// after more writes that miss the cache. A count over 1 M keys, with a snapshot
	// held unread for 80 % of the time, took 172 and 180 ns a record with 15 and
	// 131 and 119 with 6, by the time of its thread in turn.
	overlaySlots  = 6
	overlayHeader = 16
	// Pages of fewer groups are cloned: the clone is hardly larger.
	overlayClass = 2
)

// overlays are the overlays of one space, by index.
type overlays struct {
	list []*overlay
	free []uint32
	size uintptr
}

func (o *overlay) tail(i int, size uintptr) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(o), overlayHeader+uintptr(i)*size)
}

// find returns which tail is that of a slot, or -1.
func (o *overlay) find(slot int) int {
	for i := range int(o.n) {
		if o.slots[i%overlaySlots] == uint8(slot) {
			return i
		}
	}
	return -1
}

func (os *overlays) take(s *Store) uint32 {
	if n := len(os.free); n > 0 {
		i := os.free[n-1]
		os.free = os.free[:n-1]
		s.mem.overlays.Add(int64(os.size))
		s.mem.pool.Add(-int64(os.size))
		return i
	}
	words := make([]uint64, os.size/8)
	os.list = append(os.list, (*overlay)(unsafe.Pointer(&words[0])))
	s.mem.overlays.Add(int64(os.size))
	return uint32(len(os.list) - 1)
}

func (os *overlays) release(s *Store, i uint32) {
	os.free = append(os.free, i)
	s.mem.overlays.Add(-int64(os.size))
	s.mem.pool.Add(int64(os.size))
}

// overlay returns the tail of a slot of a pending page in its overlay, with its
// current content; nil if the page must be cloned instead.
func (sp *space) overlay(p *page, slot int, off uintptr) unsafe.Pointer {
	if p.class < overlayClass || sp.tailSize == 0 {
		return nil
	}
	i := p.overlay.Load()
	if i == 0 {
		i = sp.overlays.take(sp.s) + 1
		o := sp.overlays.list[i-1]
		o.own, o.n = sp.s.version, 0
		p.overlay.Store(i)
	}
	o := sp.overlays.list[i-1]
	if o.own != sp.s.version {
		return nil
	}
	j := o.find(slot)
	if j < 0 {
		if o.n == overlaySlots {
			return nil
		}
		j = int(o.n)
		o.slots[j] = uint8(slot)
		copyMemory(o.tail(j, sp.tailSize), p.at(off+sp.keySize), sp.tailSize)
		o.n++
		sp.groupOf(p, slot).overlaid |= 1 << (slot & 7)
	}
	return o.tail(j, sp.tailSize)
}

// merge puts the tails of an overlay into a writable page.
func (sp *space) merge(p *page, o *overlay) {
	for i := range int(o.n) {
		slot := int(o.slots[i])
		copyMemory(p.at(sp.offset(slot)+sp.keySize), o.tail(i, sp.tailSize), sp.tailSize)
		g := sp.groupOf(p, slot)
		g.overlaid &^= 1 << (slot & 7)
		sp.touch(g, slot)
	}
}
