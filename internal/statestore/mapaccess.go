package statestore

import (
	"bytes"
	"iter"
	"slices"
	"unsafe"

	"github.com/staunchdev/staunch/internal/keyhash"
)

// Sub takes the sub-keys of a map state in hand.
type Sub[M comparable] struct {
	keyer keyer[M]
	hash  keyhash.Func[M]
}

// SubOf returns the Sub of map states with keys of type M in stores with this seed.
func SubOf[M comparable](seed uint64) (*Sub[M], error) {
	kr, err := newKeyer[M]()
	if err != nil {
		return nil, err
	}
	hash, err := keyhash.For[M](seed)
	return &Sub[M]{kr, hash}, err
}

// Seed is the seed of the key hash.
func (t *Table) Seed() uint64 { return t.s.cfg.Seed }

func (su *Sub[M]) set(t *Table, m M) *mapLayer {
	ml := t.maps
	su.keyer.set(&ml.key, m, su.hash(m))
	return ml
}

// MapGet returns the value at m in the map in hand, and whether there is one.
func MapGet[M comparable, V any](t *Table, su *Sub[M], m M) (x V, ok bool) {
	tail := su.set(t, m).tail()
	if tail == nil {
		return x, false
	}
	return loadTail[V](t, tail), true
}

// MapSet stores x at m in the map in hand.
func MapSet[M comparable, V any](t *Table, su *Sub[M], m M, x V) {
	ml := su.set(t, m)
	v := &t.decl.Value
	switch v.form {
	case plainValue:
		*(*V)(ml.slot()) = x
	case textValue:
		v.storeText(t.sp.arena, ml.slot(), unsafe.Pointer(&x))
	case encodedValue:
		b := encodeValue(t, x)
		t.sp.arena.setText((*textRef)(ml.slot()), b)
	}
}

// MapDelete removes m from the map in hand.
func MapDelete[M comparable](t *Table, su *Sub[M], m M) { su.set(t, m).remove() }

// MapLen is the number of entries of the map in hand.
func MapLen(t *Table) int {
	r := t.maps.root()
	if r == nil {
		return 0
	}
	if t.maps.timeOff == 0 {
		return int(r.count)
	}
	n := 0
	t.maps.eachPage(r, func(p *page) bool {
		t.maps.sub.liveSlots(p, func(slot int, off uintptr) {
			if !t.maps.expired(t.maps.sub.tail(p, slot, off)) {
				n++
			}
		})
		return true
	})
	return n
}

// MapAll yields the entries of the map in hand in the order of their encoded
// keys. Entries may be deleted and changed meanwhile; those deleted are not
// yielded, those added may not be. Another key may be taken in hand only after
// it ended.
func MapAll[M comparable, V any](t *Table, su *Sub[M]) iter.Seq2[M, V] {
	return func(yield func(M, V) bool) {
		for _, enc := range t.maps.encodedKeys() {
			ml := t.maps
			m := decodeKey[M](su.keyer.typ.form, su.keyer.layout, enc)
			su.keyer.set(&ml.key, m, su.hash(m))
			tail := ml.tail()
			if tail == nil {
				continue
			}
			if !yield(m, loadTail[V](t, tail)) {
				return
			}
		}
	}
}

func (ml *mapLayer) eachPage(r *mapRoot, yield func(*page) bool) {
	if r.kind == rootPage {
		yield(ml.sub.pages[r.id])
		return
	}
	ml.roots[r.id].each(yield)
}

// encodedKeys returns copies of the keys of the map in hand, in order.
func (ml *mapLayer) encodedKeys() [][]byte {
	r := ml.root()
	if r == nil {
		return nil
	}
	keys := make([][]byte, 0, r.count)
	var buf []byte
	ml.eachPage(r, func(p *page) bool {
		ml.sub.liveSlots(p, func(_ int, off uintptr) {
			enc := ml.sub.keyAt(ml.sub.arena.chunks, p.at(off))
			if ml.sub.key.form == inlineKey {
				// Slots move; bytes in chunks do not change.
				buf = append(buf, enc...)
				enc = buf[len(buf)-len(enc) : len(buf) : len(buf)]
			}
			keys = append(keys, enc)
		})
		return true
	})
	slices.SortFunc(keys, bytes.Compare)
	return keys
}

// loadTail returns the value in a tail.
func loadTail[V any](t *Table, tail unsafe.Pointer) (x V) {
	switch t.decl.Value.form {
	case textValue:
		t.decl.Value.loadText(t.sp.arena.chunks, unsafe.Pointer(&x), tail)
		return x
	case encodedValue:
		return getEncoded[V](t, tail)
	}
	return *(*V)(tail)
}
