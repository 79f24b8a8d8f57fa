package flat

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// Append appends the canonical encoding of the value at p, which must be of
// the layout's type.
func (l *Layout) Append(dst []byte, p unsafe.Pointer) []byte {
	if l.Dense {
		return append(dst, unsafe.Slice((*byte)(p), l.Size)...)
	}
	return appendSteps(dst, l.enc, p)
}

// Width is the length of what Append appends.
func (l *Layout) Width(p unsafe.Pointer) int {
	if l.Fixed >= 0 {
		return l.Fixed
	}
	n := l.least - len(l.Strings)
	for _, off := range l.Strings {
		length := len(*(*string)(unsafe.Add(p, off)))
		n += uvarintWidth(uint64(length)) + length
	}
	return n
}

func appendSteps(dst []byte, steps []step, p unsafe.Pointer) []byte {
	for i := range steps {
		s := &steps[i]
		at := unsafe.Add(p, s.off)
		switch s.op {
		case copyBytes, copyBools:
			dst = append(dst, unsafe.Slice((*byte)(at), s.n)...)
		case wideInt:
			dst = binary.LittleEndian.AppendUint64(dst, uint64(int64(*(*int32)(at))))
		case wideUint:
			dst = binary.LittleEndian.AppendUint64(dst, uint64(*(*uint32)(at)))
		case text:
			v := *(*string)(at)
			dst = binary.AppendUvarint(dst, uint64(len(v)))
			dst = append(dst, v...)
		case repeat:
			for j := range s.n {
				dst = appendSteps(dst, s.body, unsafe.Add(at, uintptr(j)*s.stride))
			}
		}
	}
	return dst
}

func uvarintWidth(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }
