package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/internal/statestore"
)

// line is what the account of a key says of an order: the how-many-th of the
// key it is, and the balance behind it.
type line struct {
	Order   order
	N       uint32
	Balance int64
	Armed   uint32 // the alarm that was set when it came; 0: none
	Alarm   uint32 // this is not an order's line, but an alarm that fires
}

// total is what a bucket of keys says of a line.
type total struct {
	Line   line
	Bucket uint32
	N      uint32
	Sum    int64
}

// account is the state of a key. It is large enough that the state of some seeds
// needs objects of its own, and that of others is kept in the manifest.
type account struct {
	N       uint32
	Balance int64
	Notes   [24]uint64

	Alarm uint32 // that is set; 0: none
	Cause order  // that has set it
	Due   int64
}

// bucketOf is the key of the second stage.
func bucketOf(l line) uint32 { return l.Order.Key % 3 }

func enter(a account, o order) (account, line) {
	a.N++
	a.Balance += int64(o.Amount)
	a.Notes[a.N%uint32(len(a.Notes))] = uint64(o.Pos)
	return a, line{Order: o, N: a.N, Balance: a.Balance}
}

func sumUp(a account, l line) (account, total) {
	a.N++
	a.Balance += l.Balance
	return a, total{l, bucketOf(l), a.N, a.Balance}
}

// keyed is an operator with one keyed state, over the real store.
type keyed[In, Out any] struct {
	operator.Base
	parts   *Parts
	name    string
	keyOf   func(In) uint32
	orderOf func(In) order
	fold    func(account, In) (account, Out)
	// tend sees to the alarm behind fold, and ring is called when it fires; nil:
	// there are none.
	tend  func(account, Out, Clock) (account, Out)
	ring  func(a account, at int64) (account, Out)
	alarm alarmed

	out   operator.Output[Out]
	rt    *operator.Runtime
	store *statestore.Store
	keyer *statestore.Keyer[uint32]
	state *statestore.Table
	live  []*keyedSnapshot
}

func stateDecl() statestore.Decl {
	v, err := statestore.ValueOf[account](nil)
	schema := codec.For[account]().Schema()
	return statestore.Decl{Name: "account", Kind: checkpoint.ValueState, Value: v, ValueSchema: &schema, Err: err}
}

func (o *keyed[In, Out]) Open(rt *operator.Runtime) error {
	o.rt = rt
	key, err := statestore.KeyOf[uint32]()
	if err != nil {
		return err
	}
	o.store = statestore.New(statestore.Config{Key: key, Range: rt.Range, Seed: rt.HashSeed, Now: rt.Now})
	if o.keyer, err = statestore.KeyerOf[uint32](o.store); err != nil {
		return err
	}
	if o.state, err = o.store.Declare(stateDecl()); err != nil {
		return err
	}
	if o.ring != nil {
		if o.alarm.table, err = o.store.Declare(alarmDecl()); err != nil {
			return err
		}
	}
	if rt.Restore == nil {
		return nil
	}
	rt.Exec(func(ctx context.Context) {
		err = o.store.Restore(ctx, rt.Store, rt.Restore.Op.States, rt.Restore.Objects)
	}, func() {
		if err != nil {
			rt.Fail(fmt.Errorf("operator %q: restore: %w", o.name, err))
		}
	})
	return nil
}

func (o *keyed[In, Out]) Process(r *element.Run[In]) error {
	for i, v := range r.Values {
		if err := o.parts.Apply(o.name, o.orderOf(v)); err != nil {
			return err
		}
		k := o.keyOf(v)
		h := uint64(0)
		if r.Hashes != nil {
			h = r.Hashes[i]
		} else {
			h = o.keyer.Hash(k)
		}
		if !o.rt.Range.Contains(h) {
			return fmt.Errorf("key %d, hash %x, is not of this subtask", k, h)
		}
		o.keyer.Set(k, h)
		a, _ := statestore.Get[account](o.state)
		a, out := o.fold(a, v)
		if o.tend != nil {
			if o.alarm.overdue() {
				o.parts.w.fail("LOST: the timer of key %d is due, and does not fire", k)
			}
			a, out = o.tend(a, out, &o.alarm)
		}
		statestore.Set(o.state, a)
		o.out.Emit(out)
	}
	o.store.EndKey()
	return o.out.Flush()
}

// apply notes that an order changes the state of an operator, in some process and
// attempt. In AtMostOnce that happens once, whatever fails, whatever becomes of
// that state, and whatever checkpoint a start goes back to.
func (w *world) apply(p *process, operator string, o order) {
	if w.Mode != checkpoint.AtMostOnce || o == ByTimer {
		return
	}
	// A fresh start begins anew.
	history := fmt.Sprint(operator, w.audit.root(w.audit.lineageOf[p.String()]))
	by := w.applied[history]
	if by == nil {
		by = map[[2]uint32]bool{}
		w.applied[history] = by
	}
	at := [2]uint32{o.Split, o.Pos}
	if by[at] {
		w.fail("REPEATED: order %+v is applied twice by operator %s", o, operator)
	}
	by[at] = true
}

func (o *keyed[In, Out]) Watermark(t int64) error { return o.out.Watermark(t) }

func (o *keyed[In, Out]) Snapshot(b checkpoint.Barrier) (operator.Snapshot, error) {
	sn, err := o.store.Snapshot(uint64(b.ID))
	if errors.Is(err, statestore.ErrBusy) {
		return nil, &operator.DeclineError{Reason: checkpoint.Busy}
	}
	if err != nil {
		return nil, err
	}
	s := &keyedSnapshot{Snapshot: sn, id: b.ID, ack: checkpoint.OperatorAck{Operator: o.name, Range: o.rt.Range}}
	o.live = append(slices.DeleteFunc(o.live, func(s *keyedSnapshot) bool { return s.released }), s)
	return s, nil
}

// Abort stops what is still being written.
func (o *keyed[In, Out]) Abort(id checkpoint.ID) error {
	for _, s := range o.live {
		if s.id == id {
			s.Snapshot.Abort()
		}
	}
	return nil
}

func (o *keyed[In, Out]) Complete(id checkpoint.ID) error {
	o.store.Confirm(uint64(id))
	return nil
}

type keyedSnapshot struct {
	*statestore.Snapshot
	id       checkpoint.ID
	ack      checkpoint.OperatorAck
	released bool
}

func (s *keyedSnapshot) Release() {
	s.released = true
	s.Snapshot.Release()
}

func (s *keyedSnapshot) Write(ctx context.Context, p *statefile.Packer) (ack checkpoint.OperatorAck, err error) {
	s.ack.States, err = s.Snapshot.Write(ctx, p)
	return s.ack, err
}
