package statestore

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/staunchdev/staunch/internal/flat"
	"github.com/staunchdev/staunch/internal/keyhash"
)

// keyForm is how keys of a type are held in slots.
type keyForm uint8

const (
	// Memory that is its own canonical encoding, up to 64 bytes.
	inlineKey keyForm = iota + 1
	// A keyRef to the bytes of the string.
	stringKey
	// A keyRef to the canonical encoding.
	encodedKey
)

const maxInlineKey = 64

// KeyType is what a table needs to know of the type of its keys, without that
// type. It is immutable.
type KeyType struct {
	name  string
	form  keyForm
	size  uintptr // of an inline key
	width int     // of the encoding; 0: variable
	// bind returns the hash of an encoded key.
	bind func(seed uint64) func(enc []byte) uint64
	// bindWords returns the hash of many inline keys of 8 bytes.
	bindWords func(seed uint64) func(dst, keys []uint64)
}

// KeyOf describes keys of type K.
func KeyOf[K comparable]() (KeyType, error) {
	rt := reflect.TypeFor[K]()
	l, err := flat.OfKey(rt)
	if err != nil {
		return KeyType{}, fmt.Errorf("key type %s: %w", rt, err)
	}
	t := KeyType{name: rt.String(), width: max(l.Fixed, 0)}
	switch {
	case rt.Kind() == reflect.String:
		t.form, t.width = stringKey, 0
	case l.Dense && l.Size > 0 && l.Size <= maxInlineKey:
		t.form, t.size = inlineKey, l.Size
	default:
		t.form = encodedKey
	}
	t.bind = func(seed uint64) func([]byte) uint64 {
		hash, err := keyhash.For[K](seed)
		if err != nil { // flat.OfKey accepted the type
			panic(err)
		}
		return func(enc []byte) uint64 { return hash(decodeKey[K](t.form, l, enc)) }
	}
	if t.word() {
		t.bindWords = func(seed uint64) func(dst, keys []uint64) {
			all, err := keyhash.All[K](seed)
			if err != nil {
				panic(err)
			}
			return func(dst, keys []uint64) {
				all(dst, unsafe.Slice((*K)(unsafe.Pointer(unsafe.SliceData(keys))), len(keys)))
			}
		}
	}
	return t, nil
}

// decodeKey returns the key whose canonical bytes enc are. A string key aliases
// them. The bytes were encoded by this package, or checked when restored.
func decodeKey[K comparable](form keyForm, l *flat.Layout, enc []byte) (k K) {
	switch form {
	case inlineKey:
		return *(*K)(unsafe.Pointer(unsafe.SliceData(enc)))
	case stringKey:
		s := unsafe.String(unsafe.SliceData(enc), len(enc))
		return *(*K)(unsafe.Pointer(&s))
	}
	return decodeLongKey[K](l, enc)
}

// decodeLongKey is apart so that other keys do not escape to the heap.
func decodeLongKey[K comparable](l *flat.Layout, enc []byte) (k K) {
	if err := l.Decode(enc, unsafe.Pointer(&k)); err != nil {
		fail("decode a key: %w", err)
	}
	return k
}

// key is a key in hand: its hash and its canonical bytes.
type key struct {
	hash   uint64
	inline [maxInlineKey / 8]uint64 // the bytes of an inline key
	enc    []byte                   // the canonical bytes, whatever the form
	buf    []byte                   // what enc is built in
}

// setEncoded takes a key by its canonical bytes, which must stay valid.
func (k *key) setEncoded(t *KeyType, enc []byte, hash uint64) {
	k.hash = hash
	if t.form == inlineKey {
		k.enc = unsafe.Slice((*byte)(unsafe.Pointer(&k.inline)), t.size)
		copy(k.enc, enc)
		return
	}
	k.enc = enc
}

// keyer sets keys of type K.
type keyer[K comparable] struct {
	typ    KeyType
	layout *flat.Layout
}

func newKeyer[K comparable]() (keyer[K], error) {
	t, err := KeyOf[K]()
	if err != nil {
		return keyer[K]{}, err
	}
	l, err := flat.OfKey(reflect.TypeFor[K]())
	return keyer[K]{typ: t, layout: l}, err
}

// set takes k in hand.
func (kr *keyer[K]) set(dst *key, k K, hash uint64) {
	dst.hash = hash
	switch kr.typ.form {
	case inlineKey:
		*(*K)(unsafe.Pointer(&dst.inline)) = k
		if uintptr(len(dst.enc)) != kr.typ.size {
			dst.enc = unsafe.Slice((*byte)(unsafe.Pointer(&dst.inline)), kr.typ.size)
		}
	case stringKey:
		s := *(*string)(unsafe.Pointer(&k))
		dst.enc = unsafe.Slice(unsafe.StringData(s), len(s))
	default:
		dst.buf = kr.layout.Append(dst.buf[:0], unsafe.Pointer(&k))
		dst.enc = dst.buf
	}
}

// keyRef is how a slot holds a key that is not inline. The whole hash is kept:
// a key is compared by it before its bytes are looked at, and a split needs
// no bytes at all.
type keyRef struct {
	hash  uint64
	chunk uint32
	off   uint32
}

// word says whether keys are inline and of 8 bytes.
func (t *KeyType) word() bool { return t.form == inlineKey && t.size == 8 }

// slotKeySize is what a key takes in a slot.
func (t *KeyType) slotKeySize() uintptr {
	if t.form == inlineKey {
		return t.size
	}
	return unsafe.Sizeof(keyRef{})
}
