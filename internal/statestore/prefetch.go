package statestore

import (
	"math/bits"
	"unsafe"
)

// Prefetch brings what look-ups of these hashes will read into the cache. A
// look-up waits for memory once or twice, and a processor overlaps the waits of
// a few records only, for a record is some hundred instructions; here the
// waits of many overlap. The owner calls it with the hashes of the next 32 to 64
// records, before it takes their keys in hand. It changes nothing.
func (s *Store) Prefetch(hashes []uint64) {
	for i, t := range s.tables {
		if i == maxPrefetch {
			return
		}
		if t.sp.entries >= minPrefetch {
			s.sink += t.prefetch(hashes)
		}
	}
}

const (
	// What fewer entries take is in the cache anyhow.
	minPrefetch = 16 << 10
	// More tables would push out what was fetched for the first ones.
	maxPrefetch = 2
)

// prefetch reads the first bytes of the cache lines of each group, and then of
// the keys that are not inline. Go has no instruction for it; a plain load does
// as well as long as nothing waits for its result but the sum.
func (t *Table) prefetch(hashes []uint64) (sum uint64) {
	sp := t.sp
	lines := min(sp.groupLen, 192)
	for _, h := range hashes {
		d, x := t.dir(h)
		base := pageHeader + uintptr(h)&uintptr(d.mask)*sp.groupLen
		p := unsafe.Pointer(d.at(x))
		for off := uintptr(0); off < lines; off += 64 {
			sum += *(*uint64)(unsafe.Add(p, base+off))
		}
	}
	if t.s.version > 1 {
		sum += t.prefetchUntouched(hashes)
	}
	if sp.key.form != inlineKey {
		for _, h := range hashes {
			sum += t.prefetchKey(h)
		}
	}
	return sum
}

// prefetchKey reads the first bytes of the key with this hash.
func (t *Table) prefetchKey(hash uint64) uint64 {
	d, x := t.dir(hash)
	p := d.at(x)
	i := uintptr(hash) & uintptr(d.mask)
	for m := matchTag(t.sp.groupAt(p, i).ctrl, tagOf(hash)); m != 0; m &= m - 1 {
		r := (*keyRef)(p.at(t.sp.offset(int(i)<<3 + bits.TrailingZeros64(m)>>3)))
		if r.hash == hash {
			return uint64(t.sp.arena.chunks[r.chunk][r.off])
		}
	}
	return 0
}

// prefetchUntouched reads what the first write to a group in a version needs
// besides the group: the header of its page, and the overlay if there is one.
// All other writes do without, so only a part of the records pays for it.
func (t *Table) prefetchUntouched(hashes []uint64) (sum uint64) {
	sp, version := t.sp, t.s.version
	var pages [64]*page
	n := 0
	for _, h := range hashes {
		d, x := t.dir(h)
		p := d.at(x)
		q := absent
		if sp.groupAt(p, uintptr(h)&uintptr(d.mask)).own != version {
			q = p // no branch, which would be guessed wrong and then hold up the loads behind it
		}
		pages[n&63] = q
		n++
		sum += uint64(q.own)
	}
	for _, p := range pages[:min(n, len(pages))] {
		if i := p.overlay.Load(); i != 0 {
			sum += uint64(sp.overlays.list[i-1].own)
		}
	}
	return sum
}
