package staunch

import (
	"fmt"
	"reflect"

	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
)

// call is what operators that run user code with a Ctx have in common: the
// context of the call, and the record that the user's code is looking at.
type call[In, Out any] struct {
	operator.Base
	op string // the operator's name
	c  Ctx[Out]
	in *element.Run[In] // nil while no user code runs
	at int
}

// Where implements operator.Where.
func (o *call[In, Out]) Where() (op, record string) {
	if o.in == nil || o.at >= len(o.in.Values) {
		return o.op, ""
	}
	return o.op, "record " + operator.Describe(o.in.Values[o.at])
}

// take puts record i of r in hand.
func (o *call[In, Out]) take(r *element.Run[In], i int) {
	o.at = i
	if r.Times != nil {
		o.c.time = r.Times[i]
	}
}

// Watermark hands a watermark on; nothing waits for it here.
func (o *call[In, Out]) Watermark(t int64) error { return o.c.forward(t) }

// flatMapper calls f for each record: FlatMap, FlatMapSeq and TryMap.
type flatMapper[In, Out any] struct {
	call[In, Out]
	f    func(c *Ctx[Out], in In) error
	dead string // side of what f fails for; empty: a failure ends the attempt
	mark []int  // what was emitted before the record in hand, by output
}

// flatMap makes n an operator that calls f for each record of s.
func flatMap[T, U any](s Stream[T], n *node, f func(c *Ctx[U], in T) error) Stream[U] {
	checkDeadLetter[T](s.job, n)
	n.make = func(name string, outs [][]any) operator.Made {
		o := &flatMapper[T, U]{call: call[T, U]{op: name, c: newCtx[U](n, outs)}, f: f}
		if n.cfg.dead != nil {
			o.dead = n.cfg.dead.side
		}
		return operator.Made{Op: o, Entries: []operator.Entry{operator.NewEntry[T](o)}}
	}
	connect(s, n)
	return mainPort[U](s.job, n)
}

// checkDeadLetter checks that an operator that takes T sends Failed[T] to its
// dead-letter side.
func checkDeadLetter[T any](j *Job, n *node) {
	if d, t := n.cfg.dead, reflect.TypeFor[T](); d != nil && d.typ != t {
		j.fault("%s: DeadLetter takes Failed[%v], but what fails is a %v", n.label, d.typ, t)
	}
}

func (o *flatMapper[In, Out]) Open(rt *operator.Runtime) error {
	o.c.rt = rt
	return nil
}

func (o *flatMapper[In, Out]) Process(r *element.Run[In]) error {
	o.c.begin(r.Times)
	o.in = r
	for i := range r.Values {
		o.take(r, i)
		if o.dead != "" {
			o.remember()
		}
		if err := o.f(&o.c, r.Values[i]); err != nil {
			if o.dead == "" {
				return fmt.Errorf("operator %q, record %s: %w", o.op, operator.Describe(r.Values[i]), err)
			}
			o.bury(r.Values[i], err)
		}
	}
	o.in = nil
	return o.c.flush()
}

// remember notes what was emitted so far: a record that fails emits nothing but
// its dead letter, however far its function came.
func (o *flatMapper[In, Out]) remember() {
	o.mark = append(o.mark[:0], o.c.main.emitted())
	for _, s := range o.c.sides {
		o.mark = append(o.mark, s.emitted())
	}
}

func (o *flatMapper[In, Out]) bury(v In, err error) {
	o.c.main.cut(o.mark[0])
	for i, s := range o.c.sides {
		s.cut(o.mark[i+1])
	}
	EmitSide(&o.c, Side[Failed[In]]{o.dead}, Failed[In]{Value: v, Err: err.Error(), From: o.op})
}
