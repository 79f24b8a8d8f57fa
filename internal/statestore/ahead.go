package statestore

import (
	"unsafe"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// ahead holds copies of pages that the reader of a snapshot has left and not
// yet written. To copy a page takes a small part of the time that it takes to
// write it, and the sooner the reader leaves a page, the fewer of them the
// writer must clone, and the fewer writes go to overlays.
//
// How many there may be at once the clones of the snapshots before say: where
// few pages change, copies would cost memory and save nothing.
//
// It is a ring of pages in one allocation without pointers, which goes from one
// snapshot to the next.
type ahead struct {
	sp    *space
	mem   []uint64
	words int // of a page
	pages int
	head  int // the oldest copy
	n     int
}

// aheadPart is the part of the pages of a table that may stand copied at once.
const aheadPart = 0.3

// plan says how many pages the reader of a new snapshot may be ahead. It is of
// the writer's goroutine.
func (sp *space) planAhead() int {
	sp.lead = min(max(sp.clones, sp.lead*7/8), int(aheadPart*float64(sp.pageCount)))
	sp.clones = 0
	return sp.lead
}

// init makes room for copies. Tables whose entries lead to other pages are read
// where they are.
func (a *ahead) init(v *tableView) {
	sp := v.space.sp
	var mem []uint64
	if m := sp.spare.Swap(nil); m != nil {
		mem = *m
	}
	a.sp, a.words = sp, int(sp.pageSize(sp.full)/8)
	if kind := v.t.decl.Kind; kind == checkpoint.ValueState || kind == checkpoint.TimerState {
		a.pages = v.lead
	}
	if n := a.pages * a.words; n > len(mem) || n < len(mem)/4 {
		sp.s.mem.ahead.Add(8 * int64(n-len(mem)))
		mem = make([]uint64, n)
	}
	a.mem = mem
}

// end leaves the memory to the next snapshot. Of two that were written at once
// the memory of one goes.
func (a *ahead) end() {
	mem := a.mem
	if other := a.sp.spare.Swap(&mem); other != nil {
		a.sp.s.mem.ahead.Add(-8 * int64(len(*other)))
	}
}

// takes says whether a page is to be copied.
func (a *ahead) takes(p *page) bool { return a.pages > 0 && p.class == a.sp.full }

func (a *ahead) full() bool { return a.n == a.pages }

func (a *ahead) page(i int) *page { return (*page)(unsafe.Pointer(&a.mem[i%a.pages*a.words])) }

// push copies a page as the snapshot sees it, and of its headers only what the
// writer leaves alone.
func (a *ahead) push(p *page, o *overlay) {
	c := a.page(a.head + a.n)
	a.n++
	c.depth, c.class = p.depth, p.class
	for i := range p.groups() {
		from, to := a.sp.groupAt(p, i), a.sp.groupAt(c, i)
		to.ctrl = from.ctrl
		copyMemory(unsafe.Add(unsafe.Pointer(to), groupHeader), unsafe.Add(unsafe.Pointer(from), groupHeader), groupSlots*a.sp.stride)
	}
	if o == nil {
		return
	}
	for i := range int(o.n) {
		slot := int(o.slots[i%overlaySlots])
		copyMemory(c.at(a.sp.offset(slot)+a.sp.keySize), o.tail(i, a.sp.tailSize), a.sp.tailSize)
	}
}

// pop returns the oldest copy, which is valid until the next push.
func (a *ahead) pop() *page {
	p := a.page(a.head)
	a.head = (a.head + 1) % a.pages
	a.n--
	return p
}
