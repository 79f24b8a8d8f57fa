package statestore

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// space is pages of one geometry: those of a table, or those of all maps of a
// map state. Its methods work on a page or a directory that the caller names.
type space struct {
	geometry
	s    *Store
	key  KeyType
	hash func(enc []byte) uint64
	word bool // keys are inline and of 8 bytes
	// hashWords hashes many of them.
	hashWords func(dst, keys []uint64)
	arena     *arena

	// The index of a hash is (hash-lo)*mul<<skip: see keyhash.Mul. skip leaves
	// out the bits that chose the sub-directory.
	lo, mul uint64
	skip    uint8

	pages    []*page // by id, from 1; nil if pages of this space have no ids
	freeIDs  []uint32
	pool     [5][]*page
	overlays overlays

	// dropTail lets go of what the tail of an entry refers to.
	dropTail func(tail unsafe.Pointer)

	entries   int
	pageCount int
	clones    int                      // pages cloned for a snapshot since the last one was taken
	lead      int                      // how many pages the reader of the last snapshot may be ahead
	spare     atomic.Pointer[[]uint64] // for their copies, while no reader has it
}

func (sp *space) index(hash uint64) uint64 { return (hash - sp.lo) * sp.mul << (sp.skip & 63) }

// find returns the slot of k in p, a page with mask+1 groups, and its offset;
// the offset is 0 if k is not there.
func (sp *space) find(p *page, pageMask uint8, k *key) (slot int, off uintptr) {
	if sp.word {
		return sp.findWord(p, pageMask, k.hash, k.inline[0])
	}
	mask := uintptr(pageMask)
	i := uintptr(k.hash) & mask
	tag := tagOf(k.hash)
	for range mask + 1 {
		g := sp.groupAt(p, i)
		for m := matchTag(g.ctrl, tag); m != 0; m &= m - 1 {
			slot = int(i)<<3 + bits.TrailingZeros64(m)>>3
			off = sp.offset(slot)
			if sp.equal(p.at(off), k) {
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

// findWord is find for keys of 8 bytes.
func (sp *space) findWord(p *page, pageMask uint8, hash, want uint64) (slot int, off uintptr) {
	mask := uintptr(pageMask)
	i := uintptr(hash) & mask
	tag := tagOf(hash)
	for range mask + 1 {
		base := pageHeader + i*sp.groupLen
		c := (*group)(p.at(base)).ctrl
		for m := matchTag(c, tag); m != 0; m &= m - 1 {
			j := uintptr(bits.TrailingZeros64(m)) >> 3
			off = base + groupHeader + j*sp.stride
			if *(*uint64)(p.at(off)) == want {
				return int(i<<3 + j), off
			}
		}
		if hasEmpty(c) {
			break
		}
		i = (i + 1) & mask
	}
	return -1, 0
}

// equal compares the key in a slot with k.
func (sp *space) equal(slot unsafe.Pointer, k *key) bool {
	if sp.key.form == inlineKey {
		return string(unsafe.Slice((*byte)(slot), sp.key.size)) == string(k.enc)
	}
	r := (*keyRef)(slot)
	return r.hash == k.hash && string(sizedAt(sp.arena.chunks, piece{r.chunk, r.off})) == string(k.enc)
}

// keyAt returns the canonical bytes of the key in a slot. Those of an inline
// key are the slot itself.
func (sp *space) keyAt(chunks [][]byte, slot unsafe.Pointer) []byte {
	if sp.key.form == inlineKey {
		return unsafe.Slice((*byte)(slot), sp.key.size)
	}
	r := (*keyRef)(slot)
	return sizedAt(chunks, piece{r.chunk, r.off})
}

// hashAt returns the hash of the key in a slot.
func (sp *space) hashAt(slot unsafe.Pointer) uint64 {
	if sp.key.form == inlineKey {
		return sp.hash(unsafe.Slice((*byte)(slot), sp.key.size))
	}
	return (*keyRef)(slot).hash
}

func (sp *space) storeKey(slot unsafe.Pointer, k *key) {
	if sp.key.form == inlineKey {
		copyMemory(slot, unsafe.Pointer(unsafe.SliceData(k.enc)), sp.key.size)
		return
	}
	if len(k.enc) > MaxValue {
		fail("a key of %d bytes; the limit is %d", len(k.enc), MaxValue)
	}
	p := sp.arena.addSized(k.enc)
	*(*keyRef)(slot) = keyRef{k.hash, p.chunk, p.off}
}

func (sp *space) dropKey(slot unsafe.Pointer) {
	if sp.key.form == inlineKey {
		return
	}
	r := (*keyRef)(slot)
	p := piece{r.chunk, r.off}
	sp.arena.drop(p, 4+len(sizedAt(sp.arena.chunks, p)))
}
