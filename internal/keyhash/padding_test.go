package keyhash

import "unsafe"

// dirtyPadding is padded{3, 4} with b in its padding.
//
//go:noinline
func dirtyPadding(b byte) (v padded) {
	m := unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))
	for i := range m {
		m[i] = b
	}
	v.A, v.B = 3, 4
	return v
}
