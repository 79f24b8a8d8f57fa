// Package keyhash places keys: a 64-bit hash that is the same in every process
// and on every platform, and the ranges of hashes that subtasks own.
//
// Integers are sign-extended to 64 bits and hashed by two folded multiplies, so
// all integer types agree. Every other key is hashed by xxh3 over its canonical
// bytes: those of a string kind, the flat encoding of anything else, and never
// memory with its padding and pointers.
//
// The hash is part of every checkpoint. To change it is to add another ID.
package keyhash

import (
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/staunchdev/staunch/internal/flat"
)

// ID names this hash in manifests.
const ID = 1

// Func hashes a key. It allocates nothing (but for keys that are no strings
// and whose encoding is longer than 4 KiB), and may be called by several
// goroutines.
type Func[K comparable] func(K) uint64

// Odd constants with about half of their bits set. They are the multipliers
// whatever the seed is: a multiplier mixed with the seed would become 0 for one
// seed, and all keys would collide.
const (
	mul1 = 0x9e3779b97f4a7c15
	mul2 = 0xd6e8feb86659fd93
)

// For returns the hash of keys of type K with a seed. The type is looked at
// here, once, and not at each key.
func For[K comparable](seed uint64) (Func[K], error) {
	t := reflect.TypeFor[K]()
	l, err := flat.OfKey(t)
	if err != nil {
		return nil, fmt.Errorf("hash keys of type %s: %w", t, err)
	}
	a, b := whiten(seed)
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		switch t.Size() {
		case 1:
			return func(k K) uint64 { return word(uint64(*(*int8)(unsafe.Pointer(&k))), a, b) }, nil
		case 2:
			return func(k K) uint64 { return word(uint64(*(*int16)(unsafe.Pointer(&k))), a, b) }, nil
		case 4:
			return func(k K) uint64 { return word(uint64(*(*int32)(unsafe.Pointer(&k))), a, b) }, nil
		default:
			return func(k K) uint64 { return word(*(*uint64)(unsafe.Pointer(&k)), a, b) }, nil
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		switch t.Size() {
		case 1:
			return func(k K) uint64 { return word(uint64(*(*uint8)(unsafe.Pointer(&k))), a, b) }, nil
		case 2:
			return func(k K) uint64 { return word(uint64(*(*uint16)(unsafe.Pointer(&k))), a, b) }, nil
		case 4:
			return func(k K) uint64 { return word(uint64(*(*uint32)(unsafe.Pointer(&k))), a, b) }, nil
		default:
			return func(k K) uint64 { return word(*(*uint64)(unsafe.Pointer(&k)), a, b) }, nil
		}
	case reflect.String:
		return func(k K) uint64 { return xxh3.HashStringSeed(*(*string)(unsafe.Pointer(&k)), seed) }, nil
	}
	if l.Dense {
		return func(k K) uint64 {
			return xxh3.HashSeed(unsafe.Slice((*byte)(unsafe.Pointer(&k)), l.Size), seed)
		}, nil
	}
	return func(k K) uint64 { return encoded(l, unsafe.Pointer(&k), seed) }, nil
}

// All returns a function that hashes keys to dst, which is as long. It is For
// without a call for each key where keys are integers of 64 bits or strings.
func All[K comparable](seed uint64) (func(dst []uint64, keys []K), error) {
	hash, err := For[K](seed)
	if err != nil {
		return nil, err
	}
	a, b := whiten(seed)
	switch t := reflect.TypeFor[K](); {
	case t.Kind() == reflect.String:
		return func(dst []uint64, keys []K) {
			for i, s := range unsafe.Slice((*string)(unsafe.Pointer(unsafe.SliceData(keys))), len(keys)) {
				dst[i] = xxh3.HashStringSeed(s, seed)
			}
		}, nil
	case t.Size() == 8 && (reflect.Int <= t.Kind() && t.Kind() <= reflect.Uintptr):
		return func(dst []uint64, keys []K) {
			for i, x := range unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(keys))), len(keys)) {
				dst[i] = word(x, a, b)
			}
		}, nil
	}
	return func(dst []uint64, keys []K) {
		for i, k := range keys {
			dst[i] = hash(k)
		}
	}, nil
}

// word hashes an integer. The first fold brings high bits of the product down
// to the low ones, the second spreads them over all.
func word(x, a, b uint64) uint64 {
	hi, lo := bits.Mul64(x^a, mul1)
	hi, lo = bits.Mul64(hi^lo^b, mul2)
	return hi ^ lo
}

// whiten makes two independent words of a seed (the finalizer of splitmix64 at
// two places), so that seeds that differ in one bit give unrelated hashes. An
// x equal to a loses the first fold, not the hash: b is still multiplied.
func whiten(seed uint64) (a, b uint64) {
	return splitmix(seed + mul1), splitmix(seed + mul2)
}

func splitmix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// encoded hashes the flat encoding of the value at p.
func encoded(l *flat.Layout, p unsafe.Pointer, seed uint64) uint64 {
	if l.Width(p) > 128 {
		return encodedLong(l, p, seed)
	}
	var buf [128]byte
	return xxh3.HashSeed(l.Append(buf[:0], p), seed)
}

// encodedLong is apart so that short keys do not pay for clearing its buffer.
//
//go:noinline
func encodedLong(l *flat.Layout, p unsafe.Pointer, seed uint64) uint64 {
	var buf [4096]byte
	return xxh3.HashSeed(l.Append(buf[:0], p), seed)
}
