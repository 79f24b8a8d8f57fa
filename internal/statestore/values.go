package statestore

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/flat"
	"github.com/staunchdev/staunch/internal/statefile"
)

// valueForm is how values of a type are held in slots.
type valueForm uint8

const (
	// Go memory without pointers.
	plainValue valueForm = iota + 1
	// Go memory with a textRef in place of each string.
	textValue
	// A textRef to the encoding.
	encodedValue
)

// maxInlineValue bounds what a slot holds: above, clones of pages would cost
// more than encoding does.
const maxInlineValue = 256

// ValueType is what a table needs to know of the type of its values, without
// that type. It is immutable.
type ValueType struct {
	name   string
	form   valueForm
	size   uintptr // in a slot
	width  int     // of the encoding; 0: variable, -1: it is empty
	layout *flat.Layout
	plain  []span // of a textValue: memory that holds no string
	// of an encodedValue, with the typed value at p:
	encode func(dst []byte, p unsafe.Pointer) ([]byte, error)
	decode func(b []byte, p unsafe.Pointer) error
	// make returns memory for one typed value.
	make func() unsafe.Pointer
}

// span is a piece of a value's memory.
type span struct{ off, n uintptr }

// textRef is how a slot holds bytes that are kept in chunks. Its size is that
// of a string header, whose place it takes. There is no inline form for short
// strings: an aliasing string must not change with its slot.
type textRef struct {
	len uint32
	_   uint32
	piece
}

// ValueOf describes values of type T: kept as they are if T is flat, else
// encoded with c. A c that is given for a flat type is used.
func ValueOf[T any](c codec.Codec[T]) (ValueType, error) {
	rt := reflect.TypeFor[T]()
	v := ValueType{name: rt.String(), make: func() unsafe.Pointer { return unsafe.Pointer(new(T)) }}
	l, err := flat.Of(rt)
	switch {
	case c != nil:
		v.encode = func(dst []byte, p unsafe.Pointer) ([]byte, error) { return c.Append(dst, *(*T)(p)) }
		v.decode = func(b []byte, p unsafe.Pointer) (err error) { *(*T)(p), err = c.Decode(b); return err }
	case err != nil:
		return ValueType{}, fmt.Errorf("value type %s needs a codec: %w", rt, err)
	case l.Size <= maxInlineValue:
		v.layout, v.size, v.width = l, l.Size, fileWidth(l)
		v.form = plainValue
		if len(l.Strings) > 0 {
			v.form, v.plain = textValue, plainSpans(l)
		}
		return v, nil
	default:
		v.width = fileWidth(l)
		v.encode = func(dst []byte, p unsafe.Pointer) ([]byte, error) { return l.Append(dst, p), nil }
		v.decode = l.Decode
	}
	v.form, v.size = encodedValue, unsafe.Sizeof(textRef{})
	return v, nil
}

// fileWidth is the width of encodings in files.
func fileWidth(l *flat.Layout) int {
	switch l.Fixed {
	case -1:
		return statefile.Variable
	case 0:
		return statefile.Absent
	}
	return l.Fixed
}

func plainSpans(l *flat.Layout) (spans []span) {
	var at uintptr
	for _, off := range append(append([]uintptr(nil), l.Strings...), l.Size) {
		if off > at {
			spans = append(spans, span{at, off - at})
		}
		at = off + unsafe.Sizeof("")
	}
	return spans
}

// storeText copies the typed value at src into the slot memory at dst, which
// holds an old value or zeros. Strings that did not change stay where they are.
func (v *ValueType) storeText(a *arena, dst, src unsafe.Pointer) {
	for _, off := range v.layout.Strings {
		s := *(*string)(unsafe.Add(src, off))
		if len(s) > MaxValue {
			fail("a string of %d bytes in a value; the limit is %d", len(s), MaxValue)
		}
	}
	for _, sp := range v.plain {
		copyMemory(unsafe.Add(dst, sp.off), unsafe.Add(src, sp.off), sp.n)
	}
	for _, off := range v.layout.Strings {
		s := *(*string)(unsafe.Add(src, off))
		a.setText((*textRef)(unsafe.Add(dst, off)), unsafe.Slice(unsafe.StringData(s), len(s)))
	}
}

// loadText copies the value in slot memory at src to the typed value at dst. Its
// strings alias chunks.
func (v *ValueType) loadText(chunks [][]byte, dst, src unsafe.Pointer) {
	for _, sp := range v.plain {
		copyMemory(unsafe.Add(dst, sp.off), unsafe.Add(src, sp.off), sp.n)
	}
	for _, off := range v.layout.Strings {
		b := textAt(chunks, (*textRef)(unsafe.Add(src, off)))
		*(*string)(unsafe.Add(dst, off)) = unsafe.String(unsafe.SliceData(b), len(b))
	}
}

// drop lets go of what the slot memory at p refers to.
func (v *ValueType) drop(a *arena, p unsafe.Pointer) {
	v.eachText(p, a.clearText)
}

// eachText calls f with each reference in slot memory.
func (v *ValueType) eachText(p unsafe.Pointer, f func(*textRef)) {
	switch v.form {
	case textValue:
		for _, off := range v.layout.Strings {
			f((*textRef)(unsafe.Add(p, off)))
		}
	case encodedValue:
		f((*textRef)(p))
	}
}

// appendSlot appends the encoding of the value in slot memory at p. scratch is
// memory for a typed value that only this goroutine uses.
func (v *ValueType) appendSlot(dst []byte, chunks [][]byte, p, scratch unsafe.Pointer) []byte {
	switch v.form {
	case plainValue:
		return v.layout.Append(dst, p)
	case textValue:
		v.loadText(chunks, scratch, p)
		return v.layout.Append(dst, scratch)
	}
	return append(dst, textAt(chunks, (*textRef)(p))...)
}

// decodeSlot puts the encoded value b into slot memory.
func (v *ValueType) decodeSlot(a *arena, dst unsafe.Pointer, b []byte, scratch unsafe.Pointer) error {
	if v.form == encodedValue {
		// Damage shows now and not at some later Get.
		if err := v.decode(b, scratch); err != nil {
			return err
		}
		a.setText((*textRef)(dst), b)
		return nil
	}
	if err := v.layout.Decode(b, scratch); err != nil {
		return err
	}
	if v.form == textValue {
		v.storeText(a, dst, scratch)
		return nil
	}
	copyMemory(dst, scratch, v.size)
	return nil
}

func textAt(chunks [][]byte, r *textRef) []byte {
	if r.len == 0 {
		return nil
	}
	return bytesAt(chunks, r.piece, int(r.len))
}

// setText makes r refer to b, in place of what it referred to.
func (a *arena) setText(r *textRef, b []byte) {
	if int(r.len) == len(b) && string(textAt(a.chunks, r)) == string(b) {
		return
	}
	var p piece
	if len(b) > 0 {
		p = a.add(b)
	}
	a.clearText(r)
	r.len, r.piece = uint32(len(b)), p
}

func (a *arena) clearText(r *textRef) {
	if r.len > 0 {
		a.drop(r.piece, int(r.len))
	}
	*r = textRef{}
}

// dropCopy is drop for memory that must not be written.
func (v *ValueType) dropCopy(a *arena, p unsafe.Pointer) {
	v.eachText(p, func(r *textRef) {
		if r.len > 0 {
			a.drop(r.piece, int(r.len))
		}
	})
}

// decodeTyped decodes b into the typed value at p. It keeps nothing of b.
func (v *ValueType) decodeTyped(b []byte, p unsafe.Pointer) error {
	if v.form == encodedValue {
		return v.decode(b, p)
	}
	return v.layout.Decode(b, p)
}
