package flat

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// Decode reads the encoding b into the value at p. It accepts exactly what
// Append makes, nothing after it, and copies strings out of b. After an error
// the value is partly written; blank fields and padding are left as they are.
func (l *Layout) Decode(b []byte, p unsafe.Pointer) error {
	if l.Fixed >= 0 && len(b) != l.Fixed {
		return fmt.Errorf("%w: %s takes %d bytes, not %d", ErrMalformed, l.Type, l.Fixed, len(b))
	}
	d := decoder{b: b}
	if err := d.steps(l.dec, p); err != nil {
		return fmt.Errorf("%w: %s at byte %d: %w", ErrMalformed, l.Type, d.pos, err)
	}
	if d.pos != len(b) {
		return fmt.Errorf("%w: %s ends at byte %d of %d", ErrMalformed, l.Type, d.pos, len(b))
	}
	return nil
}

// decoder reads b from pos on.
type decoder struct {
	b   []byte
	pos int
}

func (d *decoder) steps(steps []step, p unsafe.Pointer) error {
	for i := range steps {
		s := &steps[i]
		at := unsafe.Add(p, s.off)
		var err error
		switch s.op {
		case copyBytes, copyBools:
			err = d.bytes(s, at)
		case wideInt, wideUint:
			err = d.word(s.op, at)
		case text:
			err = d.text(at)
		case repeat:
			for j := 0; j < s.n && err == nil; j++ {
				err = d.steps(s.body, unsafe.Add(at, uintptr(j)*s.stride))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take returns the next n bytes.
func (d *decoder) take(n int) ([]byte, error) {
	if n > len(d.b)-d.pos {
		return nil, fmt.Errorf("needs %d bytes, %d are left", n, len(d.b)-d.pos)
	}
	b := d.b[d.pos : d.pos+n]
	d.pos += n
	return b, nil
}

func (d *decoder) bytes(s *step, at unsafe.Pointer) error {
	b, err := d.take(s.n)
	if err != nil {
		return err
	}
	if s.op == copyBools {
		for _, v := range b {
			if v > 1 {
				return fmt.Errorf("bool is %d", v)
			}
		}
	}
	copy(unsafe.Slice((*byte)(at), s.n), b)
	return nil
}

func (d *decoder) word(o op, at unsafe.Pointer) error {
	b, err := d.take(8)
	if err != nil {
		return err
	}
	v := binary.LittleEndian.Uint64(b)
	if o == wideUint {
		if v > math.MaxUint32 {
			return fmt.Errorf("%d does not fit a uint of 32 bits", v)
		}
		*(*uint32)(at) = uint32(v)
		return nil
	}
	if int64(v) != int64(int32(v)) {
		return fmt.Errorf("%d does not fit an int of 32 bits", int64(v))
	}
	*(*int32)(at) = int32(v)
	return nil
}

func (d *decoder) text(at unsafe.Pointer) error {
	n, k := binary.Uvarint(d.b[d.pos:])
	if k <= 0 {
		return fmt.Errorf("no string length")
	}
	// One value, one encoding: keys are compared by their encodings.
	if k != uvarintWidth(n) {
		return fmt.Errorf("string length %d is not in its shortest form", n)
	}
	if rest := len(d.b) - d.pos - k; n > uint64(rest) {
		return fmt.Errorf("string takes %d bytes, %d are left", n, rest)
	}
	d.pos += k
	*(*string)(at) = string(d.b[d.pos : d.pos+int(n)])
	d.pos += int(n)
	return nil
}
