package statestore

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// page is the header of a page; groups of slots follow it in the same
// allocation. A group is a header with eight control bytes, and eight slots; a
// slot is a key and its tail (the value, and the write time if the state has a
// TTL).
//
// Who may touch what:
//
//	marks                 the reader stores, the writer loads
//	overlay               the writer stores, both load
//	depth, class,         the writer writes only if the page is pending for no
//	control bytes, slots  snapshot; the reader reads only while it is
//	all else              the writer only
//
// A page holds no Go pointer, and no page is reached but through *page values
// that keep its allocation alive.
type page struct {
	own     uint32           // the version in which the page was last found writable
	overlay atomic.Uint32    // index of the overlay, plus one; 0: none
	marks   [2]atomic.Uint32 // by snapshot slot: the last version whose reader has left the page
	id      uint32           // index in space.pages, plus one; 0: reached through directories only
	depth   uint8            // bits of the index that all of its keys share
	class   uint8            // log2 of its groups
	live    uint8            // slots with an entry
	dead    uint8            // slots whose entry was deleted
}

// group is the header of a group. What a look-up and a write need besides the
// slot is here and not in the header of the page: a cache line less a record.
type group struct {
	ctrl uint64 // a control byte for each slot
	own  uint32 // the version in which the group was last written
	// Slots that changed in version own, and before that since the last confirmed
	// checkpoint. Rolled at the first write in a version (space.touch); always a
	// superset, so that aborted, overlapping and late checkpoints are harmless.
	cur, prev uint8
	overlaid  uint8 // slots whose tail is in the page's overlay
	_         uint8
}

const (
	pageHeader  = 32
	groupHeader = 16
	groupSlots  = 8

	ctrlEmpty = 0x00
	ctrlDead  = 0x01
	ctrlLive  = 0x80 // with seven bits of the hash

	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// geometry is where things are in the pages of one space.
type geometry struct {
	keySize  uintptr // of a key in a slot, padded to its tail's alignment
	tailSize uintptr // value and write time
	stride   uintptr // of a slot
	groupLen uintptr // of a group
	full     uint8   // class of the largest pages, which split
}

// newGeometry lays slots out. Pages take about 2 KiB whatever the slot takes,
// within 16 to 128 slots: more of large slots would make clones expensive,
// fewer make splits and marks frequent.
func newGeometry(key, tail uintptr) geometry {
	g := geometry{keySize: align8(key), tailSize: align8(max(tail, 1))}
	g.stride = g.keySize + g.tailSize
	g.groupLen = groupHeader + groupSlots*g.stride
	switch {
	case g.stride <= 16:
		g.full = 4
	case g.stride <= 32:
		g.full = 3
	case g.stride <= 64:
		g.full = 2
	default:
		g.full = 1
	}
	return g
}

func align8(n uintptr) uintptr { return (n + 7) &^ 7 }

// pageSize is the size of a page of a class.
func (g *geometry) pageSize(class uint8) uintptr { return pageHeader + g.groupLen<<class }

// capacity is how many slots of a page may be taken. A page of more than one
// group keeps an eighth empty, so that probes end.
func capacity(class uint8) int {
	if class == 0 {
		return groupSlots
	}
	return groupSlots<<class - 1<<class
}

// newPage allocates a page. The words are no pointers, so the collector does
// not look inside, and they align every slot to 8 bytes.
func (g *geometry) newPage(class uint8) *page {
	words := make([]uint64, g.pageSize(class)/8)
	p := (*page)(unsafe.Pointer(&words[0]))
	p.class = class
	return p
}

// groupAt returns group i.
func (g *geometry) groupAt(p *page, i uintptr) *group {
	return (*group)(p.at(pageHeader + i*g.groupLen))
}

// groupOf returns the group of a slot.
func (g *geometry) groupOf(p *page, slot int) *group { return g.groupAt(p, uintptr(slot>>3)) }

// offset of a slot from the start of its page.
func (g *geometry) offset(slot int) uintptr {
	return pageHeader + uintptr(slot>>3)*g.groupLen + groupHeader + uintptr(slot&7)*g.stride
}

func (p *page) at(off uintptr) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(p), off) }

func (p *page) groups() uintptr { return 1 << (p.class & 7) }

// mask is one less than the number of groups.
func (p *page) mask() uint8 { return 1<<(p.class&7) - 1 }

// body is all of a page behind its header.
func (g *geometry) body(p *page) []byte {
	return unsafe.Slice((*byte)(p.at(pageHeader)), g.groupLen<<p.class)
}

// setCtrl writes the control byte of a slot.
func (g *group) setCtrl(slot int, c byte) {
	shift := 8 * (slot & 7)
	g.ctrl = g.ctrl&^(0xff<<shift) | uint64(c)<<shift
}

func (g *group) ctrlOf(slot int) byte { return byte(g.ctrl >> (8 * (slot & 7))) }

// tagOf is the control byte of a live entry. The low bits of the hash choose
// group and tag; the high bits lead to the page.
func tagOf(hash uint64) uint64 { return ctrlLive | hash>>4&0x7f }

// matchTag has the high bit of each byte of c that equals tag set, and
// perhaps that of a live byte above one that does: keys are compared anyhow.
func matchTag(c, tag uint64) uint64 {
	x := c ^ lows*tag
	return (x - lows) &^ x & highs
}

// hasEmpty says whether a control word has an empty slot.
func hasEmpty(c uint64) bool { return (c-lows)&^c&highs != 0 }

// firstEmpty returns the first empty slot of a control word that has one. The
// least zero byte is always found exactly.
func firstEmpty(c uint64) int { return bits.TrailingZeros64((c-lows)&^c&highs) >> 3 }

// liveSlots yields the live slots of a page, ascending, with their offsets.
func (g *geometry) liveSlots(p *page, yield func(slot int, off uintptr)) {
	for i := range p.groups() {
		c := g.groupAt(p, i).ctrl
		for m := c & highs; m != 0; m &= m - 1 {
			slot := int(i)*groupSlots + bits.TrailingZeros64(m)>>3
			yield(slot, g.offset(slot))
		}
	}
}

// copyMemory copies n bytes between allocations without pointers.
func copyMemory(dst, src unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}

func clearMemory(p unsafe.Pointer, n uintptr) { clear(unsafe.Slice((*byte)(p), n)) }
