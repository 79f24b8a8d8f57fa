package statestore

import (
	"encoding/binary"
)

const (
	firstChunk = 4 << 10
	chunkSize  = 256 << 10
	ownChunk   = 64 << 10 // from this size on a piece has a chunk of its own
)

// arena keeps bytes that never change, in append-only chunks that belong to the
// collector: a string handed to the user may outlive the entry, the chunk, and
// the store. Readers see chunks through a copy of the slice header, and read
// only what their snapshot refers to, which the writer never writes again.
type arena struct {
	s       *Store
	chunks  [][]byte // by id; id 0 is never used
	use     []chunkUse
	open    uint32 // the chunk that is filled; 0: none
	next    int    // size of the next chunk
	freeIDs []uint32

	live, held int64 // bytes referred to, bytes of all chunks

	compacting bool  // a pass of the sweeper moves what is in victims
	added      int64 // bytes added since the sweeper was here
	before     int64 // held when the pass began
	retry      int64 // no pass begins below this size
}

// chunkUse is what only the writer knows of a chunk.
type chunkUse struct {
	used, live uint32
	victim     bool // being copied out
}

func newArena(s *Store) *arena {
	return &arena{s: s, chunks: make([][]byte, 1), use: make([]chunkUse, 1), next: firstChunk}
}

// piece names bytes in an arena. Its length is kept elsewhere.
type piece struct{ chunk, off uint32 }

// add appends b and returns where it is. b must not be empty.
func (a *arena) add(b []byte) piece {
	p := a.reserve(len(b))
	copy(a.chunks[p.chunk][p.off:], b)
	return p
}

// reserve takes n bytes that nobody reads yet.
func (a *arena) reserve(n int) piece {
	id := a.open
	if n > ownChunk {
		id = a.newChunk(n)
	} else if id == 0 || int(a.use[id].used)+n > len(a.chunks[id]) {
		a.open = 0
		if id != 0 {
			a.release(id)
		}
		id = a.newChunk(max(a.next, n))
		a.next = min(2*a.next, chunkSize)
		a.open = id
	}
	u := &a.use[id]
	p := piece{id, u.used}
	u.used += uint32(n)
	u.live += uint32(n)
	a.live += int64(n)
	a.added += int64(n)
	a.s.mem.live.Add(int64(n))
	return p
}

func (a *arena) newChunk(n int) uint32 {
	a.held += int64(n)
	var id uint32
	if l := len(a.freeIDs); l > 0 {
		id, a.freeIDs = a.freeIDs[l-1], a.freeIDs[:l-1]
		a.chunks[id], a.use[id] = make([]byte, n), chunkUse{}
	} else {
		id = uint32(len(a.chunks))
		a.chunks, a.use = append(a.chunks, make([]byte, n)), append(a.use, chunkUse{})
	}
	a.s.mem.chunks.Add(int64(n))
	return id
}

// drop says that n bytes at p are not referred to any more (by the current
// version; snapshots may still read them).
func (a *arena) drop(p piece, n int) {
	a.use[p.chunk].live -= uint32(n)
	a.live -= int64(n)
	a.s.mem.live.Add(-int64(n))
	if p.chunk != a.open {
		a.release(p.chunk)
	}
}

// release lets go of a chunk that nothing refers to. A live snapshot keeps the
// chunk alive through its own list, but that list may be this very array, so
// the place in it is written only when such snapshots have ended.
func (a *arena) release(id uint32) {
	if a.use[id].live != 0 || a.use[id].used == 0 {
		return
	}
	a.use[id].used = 0 // released once
	a.held -= int64(len(a.chunks[id]))
	a.s.retire(a, id)
}

// free makes the id of a chunk that nobody reads available.
func (a *arena) free(id uint32) {
	a.s.mem.chunks.Add(-int64(len(a.chunks[id])))
	a.chunks[id] = nil
	a.freeIDs = append(a.freeIDs, id)
}

// bytes returns n bytes at p. They must not be written.
func bytesAt(chunks [][]byte, p piece, n int) []byte {
	return chunks[p.chunk][p.off : int(p.off)+n : int(p.off)+n]
}

// addSized appends b with its length in front of it.
func (a *arena) addSized(b []byte) piece {
	p := a.reserve(4 + len(b))
	c := a.chunks[p.chunk][p.off:]
	binary.LittleEndian.PutUint32(c, uint32(len(b)))
	copy(c[4:], b)
	return p
}

// sizedAt returns what addSized appended.
func sizedAt(chunks [][]byte, p piece) []byte {
	c := chunks[p.chunk][p.off:]
	n := binary.LittleEndian.Uint32(c)
	return c[4 : 4+n : 4+n]
}
