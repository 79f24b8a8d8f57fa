package statestore

import (
	"encoding/binary"
	"iter"
	"unsafe"

	"github.com/staunchdev/staunch/internal/statefile"
)

// listLayer keeps the lists of a list state, a list a key, in chains of blocks.
// Elements are appended and never change, so a snapshot is the frozen listRoot:
// it says how many elements and how far into the last block.
//
// A block is a header (id of the next block, bytes used; both written when the
// next block is begun, so no reader looks at those of the last block of its
// root) and elements: of fixed width, or each behind its length.
type listLayer struct {
	t       *Table
	blocks  [][]byte // by id, from 1
	freeIDs []uint32
	held    int64 // bytes of blocks in use
}

// listRoot is the tail of a key that has a list.
type listRoot struct {
	count       uint32
	first, last uint32 // blocks
	used        uint32 // of the last block
}

const (
	listHeader     = 8
	firstListBlock = 64
	maxListBlock   = 16 << 10
)

func newListLayer(t *Table) *listLayer {
	return &listLayer{t: t, blocks: make([][]byte, 1)}
}

// add appends an encoded element to a writable root.
func (ll *listLayer) add(r *listRoot, b []byte) {
	if r.count >= MaxList-1 {
		fail("state %q, key %s: a list of %d elements; that is the limit", ll.t.decl.Name, ll.t.s.describeKey(), r.count)
	}
	n := len(b)
	prefixed := ll.t.decl.Value.width == statefile.Variable
	if prefixed {
		n += 4
	}
	if r.last == 0 {
		r.first = ll.take(max(firstListBlock, listHeader+n))
		r.last, r.used = r.first, listHeader
	} else if last := ll.blocks[r.last]; int(r.used)+n > len(last) {
		id := ll.take(max(min(2*len(last), maxListBlock), listHeader+n))
		binary.LittleEndian.PutUint32(last, id)
		binary.LittleEndian.PutUint32(last[4:], r.used)
		r.last, r.used = id, listHeader
	}
	to := ll.blocks[r.last][r.used:]
	if prefixed {
		binary.LittleEndian.PutUint32(to, uint32(len(b)))
		to = to[4:]
	}
	copy(to, b)
	r.used += uint32(n)
	r.count++
}

func (ll *listLayer) take(n int) uint32 {
	b := make([]byte, n)
	ll.t.s.mem.blocks.Add(int64(n))
	ll.held += int64(n)
	if l := len(ll.freeIDs); l > 0 {
		id := ll.freeIDs[l-1]
		ll.freeIDs = ll.freeIDs[:l-1]
		ll.blocks[id] = b
		return id
	}
	ll.blocks = append(ll.blocks, b)
	return uint32(len(ll.blocks) - 1)
}

// free makes the id of a block that nobody reads available.
func (ll *listLayer) free(id uint32) {
	ll.t.s.mem.blocks.Add(-int64(len(ll.blocks[id])))
	ll.blocks[id] = nil
	ll.freeIDs = append(ll.freeIDs, id)
}

// drop lets go of all blocks of a list.
func (ll *listLayer) drop(r listRoot) {
	for id := r.first; id != 0; {
		next := uint32(0)
		if id != r.last {
			next = binary.LittleEndian.Uint32(ll.blocks[id])
		}
		ll.held -= int64(len(ll.blocks[id]))
		ll.t.s.retire(ll, id)
		id = next
	}
}

func (ll *listLayer) dropTail(tail unsafe.Pointer) { ll.drop(*(*listRoot)(tail)) }

// eachElement yields the elements that a root had. It touches only what no
// writer does: blocks up to the root's last one, and of that what was used.
func eachElement(blocks [][]byte, r listRoot, width int, yield func(enc []byte) bool) bool {
	for id := r.first; id != 0; {
		b, next := blocks[id], uint32(0)
		used := r.used
		if id != r.last {
			next, used = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		}
		if width == statefile.Absent {
			for range r.count {
				if !yield(nil) {
					return false
				}
			}
			return true
		}
		for b = b[listHeader:used]; len(b) > 0; {
			n := width
			if width == statefile.Variable {
				n = int(binary.LittleEndian.Uint32(b))
				b = b[4:]
			}
			if !yield(b[:n:n]) {
				return false
			}
			b = b[n:]
		}
		id = next
	}
	return true
}

// ListAppend adds elements at the end of the list in hand. It does not read
// what is there.
func ListAppend[T any](t *Table, xs ...T) {
	if len(xs) == 0 {
		return
	}
	r := (*listRoot)(t.slot())
	for i := range xs {
		t.lists.add(r, encodeElement(t, xs[i]))
	}
}

// ListSet replaces the list in hand.
func ListSet[T any](t *Table, xs []T) {
	if len(xs) == 0 {
		t.Delete()
		return
	}
	r := (*listRoot)(t.slot())
	t.lists.drop(*r)
	*r = listRoot{}
	for i := range xs {
		t.lists.add(r, encodeElement(t, xs[i]))
	}
}

// ListLen is the number of elements of the list in hand.
func ListLen(t *Table) int {
	r := (*listRoot)(t.tail())
	if r == nil {
		return 0
	}
	return int(r.count)
}

// ListAll yields the elements of the list in hand, as they are when it begins.
func ListAll[T any](t *Table) iter.Seq[T] {
	return func(yield func(T) bool) {
		r := (*listRoot)(t.tail())
		if r == nil {
			return
		}
		ll, v := t.lists, &t.decl.Value
		eachElement(ll.blocks, *r, v.width, func(enc []byte) bool {
			var x T
			if err := v.decodeTyped(enc, unsafe.Pointer(&x)); err != nil {
				fail("state %q, key %s: decode an element: %w", t.decl.Name, t.s.describeKey(), err)
			}
			return yield(x)
		})
	}
}

// encodeElement encodes x into the store's scratch buffer.
func encodeElement[T any](t *Table, x T) []byte {
	v := &t.decl.Value
	if v.form == encodedValue {
		return encodeValue(t, x)
	}
	b := v.layout.Append(t.s.buf[:0], unsafe.Pointer(&x))
	t.s.buf = b[:0]
	if len(b) > MaxValue {
		fail("state %q, key %s: an element of %d bytes; the limit is %d", t.decl.Name, t.s.describeKey(), len(b), MaxValue)
	}
	return b
}
