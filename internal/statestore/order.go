package statestore

import (
	"bytes"
	"math/bits"
	"unsafe"
)

const (
	pageSlots = groupSlots << 4 // of the largest page
	slotMask  = pageSlots - 1   // shows the compiler that an index is in bounds
)

// sorter brings the entries of a page into the order of their hashes, equal
// ones in that of their keys. Entries are numbered in the order of their slots;
// what is moved is a byte each.
type sorter struct {
	n      int
	order  [pageSlots]uint8 // numbers of entries, sorted
	hashes [pageSlots]uint64
	offs   [pageSlots]uint32 // of their slots in the page
	slots  [pageSlots]uint8
	bucket [pageSlots]uint8
	words  [pageSlots]uint64 // keys of 8 bytes
	sorted [pageSlots]uint64 // hashes in order, for whoever wants them
	sink   uint64            // keeps the loads of touchKeys
}

// at returns the slot of an entry, which begins with its key.
func (so *sorter) at(p *page, i uint8) unsafe.Pointer { return p.at(uintptr(so.offs[i&slotMask])) }

// tail returns the tail of an entry as a snapshot sees it.
func (so *sorter) tail(sp *space, p *page, o *overlay, i uint8) unsafe.Pointer {
	if o != nil {
		if j := o.find(int(so.slots[i&slotMask])); j >= 0 {
			return o.tail(j, sp.tailSize)
		}
	}
	return p.at(uintptr(so.offs[i&slotMask]) + sp.keySize)
}

// sort takes the live entries of p and orders them. Hashes of a page differ at
// once behind the bits they share, so a distribution by the next seven of them
// leaves little to do.
func (so *sorter) sort(sp *space, chunks [][]byte, p *page) {
	so.gather(sp, p)
	var ends [pageSlots]uint8
	n, shift := so.n, p.depth&63
	for i, h := range so.hashes[:n] {
		b := uint8(sp.index(h) << shift >> 57)
		so.bucket[i&slotMask] = b
		ends[b&slotMask]++
	}
	sum := uint8(0)
	for i, c := range ends {
		ends[i] = sum
		sum += c
	}
	for i, b := range so.bucket[:n] {
		at := &ends[b&slotMask]
		so.order[*at&slotMask] = uint8(i)
		*at++
	}
	order := so.order[:n]
	for i := 1; i < len(order); i++ {
		for j := i; j > 0; j-- {
			a, b := order[j-1], order[j]
			if ha, hb := so.hashes[a&slotMask], so.hashes[b&slotMask]; ha < hb ||
				ha == hb && bytes.Compare(sp.keyAt(chunks, so.at(p, a)), sp.keyAt(chunks, so.at(p, b))) < 0 {
				break
			}
			order[j-1], order[j] = b, a
		}
	}
}

// gather takes the live entries of p in the order of their slots.
func (so *sorter) gather(sp *space, p *page) {
	n := 0
	for i := range p.groups() {
		base := pageHeader + i*sp.groupLen + groupHeader
		for m := (*group)(p.at(base-groupHeader)).ctrl & highs; m != 0; m &= m - 1 {
			j := bits.TrailingZeros64(m) >> 3
			off := base + uintptr(j)*sp.stride
			so.offs[n&slotMask] = uint32(off)
			so.slots[n&slotMask] = uint8(int(i)*groupSlots + j)
			if sp.word {
				so.words[n&slotMask] = *(*uint64)(p.at(off))
			} else {
				so.hashes[n&slotMask] = sp.hashAt(p.at(off))
			}
			n++
		}
	}
	so.n = n
	if sp.word {
		sp.hashWords(so.hashes[:n], so.words[:n])
	}
}

// touchKeys reads the first bytes of keys that are not in their slots: the waits
// for memory overlap here, and not where they are written one by one.
func (so *sorter) touchKeys(sp *space, chunks [][]byte, p *page) {
	if sp.key.form == inlineKey {
		return
	}
	for i := range so.n {
		r := (*keyRef)(so.at(p, uint8(i)))
		so.sink += uint64(chunks[r.chunk][r.off])
	}
}
