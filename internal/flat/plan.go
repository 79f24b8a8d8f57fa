package flat

import "reflect"

// op is what a step does with the memory at its offset.
type op uint8

const (
	copyBytes op = iota // n bytes that are their own encoding
	copyBools           // n bools: bytes of which only 0 and 1 may be read
	wideInt             // an int of 4 bytes, encoded in 8
	wideUint            // a uint or uintptr of 4 bytes, encoded in 8
	text                // a string
	repeat              // n elements, stride apart, by the steps of body
)

// step is one piece of a plan. Steps ascend by offset.
type step struct {
	op     op
	off    uintptr
	n      int
	stride uintptr
	body   []step
}

// plan is compiled from a type: adjacent fields whose memory is their encoding
// become one copy.
type plan struct {
	steps []step
	// checkBools keeps bools apart from other bytes, to check them. Only
	// decoding needs that: a bool in memory is 0 or 1.
	checkBools bool
}

// unrolled is the length up to which an array of elements that are not dense
// is laid out element by element; longer ones are loops, so that a plan stays
// small whatever the array.
const unrolled = 4

// add appends the steps for a value of type t at off.
func (p *plan) add(t reflect.Type, off uintptr) {
	switch t.Kind() {
	case reflect.String:
		p.steps = append(p.steps, step{op: text, off: off})
	case reflect.Bool:
		if p.checkBools {
			p.run(copyBools, off, 1)
		} else {
			p.run(copyBytes, off, 1)
		}
	case reflect.Int:
		p.word(wideInt, t, off)
	case reflect.Uint, reflect.Uintptr:
		p.word(wideUint, t, off)
	case reflect.Array:
		p.array(t, off)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Name != "_" {
				p.add(f.Type, off+f.Offset)
			}
		}
	default:
		p.run(copyBytes, off, int(t.Size()))
	}
}

func (p *plan) word(wide op, t reflect.Type, off uintptr) {
	if t.Size() == 8 {
		p.run(copyBytes, off, 8)
		return
	}
	p.steps = append(p.steps, step{op: wide, off: off})
}

// run adds n bytes, to the last step if they follow it.
func (p *plan) run(o op, off uintptr, n int) {
	if last := len(p.steps) - 1; last >= 0 {
		if s := &p.steps[last]; s.op == o && s.off+uintptr(s.n) == off {
			s.n += n
			return
		}
	}
	p.steps = append(p.steps, step{op: o, off: off, n: n})
}

func (p *plan) array(t reflect.Type, off uintptr) {
	size := t.Elem().Size()
	body := plan{checkBools: p.checkBools}
	body.add(t.Elem(), 0)
	switch {
	case len(body.steps) == 0 || t.Len() == 0:
		return
	case len(body.steps) == 1 && body.steps[0].op <= copyBools && uintptr(body.steps[0].n) == size:
		p.run(body.steps[0].op, off, t.Len()*int(size))
	case t.Len() <= unrolled:
		for i := range t.Len() {
			p.add(t.Elem(), off+uintptr(i)*size)
		}
	default:
		p.steps = append(p.steps, step{op: repeat, off: off, n: t.Len(), stride: size, body: body.steps})
	}
}

// stringOffsets appends the offsets of all strings of a plan.
func stringOffsets(steps []step, base uintptr, to []uintptr) []uintptr {
	for i := range steps {
		switch s := &steps[i]; s.op {
		case text:
			to = append(to, base+s.off)
		case repeat:
			for j := range s.n {
				to = stringOffsets(s.body, base+s.off+uintptr(j)*s.stride, to)
			}
		}
	}
	return to
}

// leastWidth is the length of an encoding whose strings are all empty.
func leastWidth(steps []step) int {
	n := 0
	for i := range steps {
		switch s := &steps[i]; s.op {
		case copyBytes, copyBools:
			n += s.n
		case wideInt, wideUint:
			n += 8
		case text:
			n++
		case repeat:
			n += s.n * leastWidth(s.body)
		}
	}
	return n
}
