package statestore

import "unsafe"

// Get returns the value of the key in hand, and whether there is one. T is the
// type that the table was declared with.
func Get[T any](t *Table) (x T, ok bool) {
	if t.cur.seq != t.s.seq {
		t.seek()
	}
	c := &t.cur
	if c.off == 0 {
		return x, false
	}
	if t.plain && c.group().overlaid == 0 {
		return *(*T)(c.p.at(c.off + t.keySize)), true
	}
	return getAny[T](t)
}

// getAny is Get for what is no plain memory, or is in an overlay.
func getAny[T any](t *Table) (x T, ok bool) {
	tail := t.tail()
	if tail == nil {
		return x, false
	}
	return loadTail[T](t, tail), true
}

// getEncoded is apart for its value escapes to the heap.
func getEncoded[T any](t *Table, tail unsafe.Pointer) (x T) {
	if err := t.decl.Value.decode(textAt(t.sp.arena.chunks, (*textRef)(tail)), unsafe.Pointer(&x)); err != nil {
		fail("state %q: decode %s: %w", t.decl.Name, t.decl.Value.name, err)
	}
	return x
}

// Set stores x for the key in hand and keeps nothing that x points to.
func Set[T any](t *Table, x T) {
	if t.cur.seq != t.s.seq {
		t.seek()
	}
	c := &t.cur
	if t.plain {
		if c.off != 0 {
			if g := c.group(); g.own == t.s.version {
				g.cur |= 1 << (c.slot & 7)
				*(*T)(c.p.at(c.off + t.keySize)) = x
				return
			}
		}
		*(*T)(t.slot()) = x
		return
	}
	setAny(t, x)
}

// Own returns where the value of the key in hand is, if it is there and can be
// changed in place; else nil, and then Get and Set do. The value counts as
// changed, and the place is valid until the next key is taken in hand.
func Own[T any](t *Table) *T {
	if t.cur.seq != t.s.seq {
		t.seek()
	}
	c := &t.cur
	if c.off == 0 || !t.plain {
		return nil
	}
	g := c.group()
	if g.own != t.s.version {
		return nil
	}
	g.cur |= 1 << (c.slot & 7)
	return (*T)(c.p.at(c.off + t.keySize))
}

// setAny is Set for what is no plain memory or has a TTL.
func setAny[T any](t *Table, x T) {
	switch v := &t.decl.Value; v.form {
	case plainValue:
		*(*T)(t.slot()) = x
	case textValue:
		v.storeText(t.sp.arena, t.slot(), unsafe.Pointer(&x))
	case encodedValue:
		b := encodeValue(t, x)
		t.sp.arena.setText((*textRef)(t.slot()), b)
	}
}

// encodeValue encodes x into the store's scratch buffer.
func encodeValue[T any](t *Table, x T) []byte {
	b, err := t.decl.Value.encode(t.s.buf[:0], unsafe.Pointer(&x))
	if err != nil {
		fail("state %q, key %s: encode %s: %w", t.decl.Name, t.s.describeKey(), t.decl.Value.name, err)
	}
	t.s.buf = b[:0]
	if len(b) > MaxValue {
		fail("state %q, key %s: a value of %d bytes; the limit is %d", t.decl.Name, t.s.describeKey(), len(b), MaxValue)
	}
	return b
}
