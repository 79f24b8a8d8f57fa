package staunch

import (
	"context"
	"errors"
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/internal/statestore"
)

// keyedCall is what operators with keyed state have in common: the store, and
// the key that the user's code is looking at.
type keyedCall[K comparable, In, Out any] struct {
	call[In, Out]
	keyOf func(In) K
	store *statestore.Store
	keyer *statestore.Keyer[K]
	key   K    // in hand
	keyAt int  // the record that key is of
	timer bool // key is that of a timer
	live  []*stateSnapshot

	// Keys and hashes of the records from the last multiple of ahead on.
	keys   [ahead]K
	hashes [ahead]uint64
}

// ahead is for how many records at once keys are taken, hashed, and what their
// look-ups will read is fetched.
const ahead = 64

func newKeyedCall[K comparable, In, Out any](n *node, name string, keyOf func(In) K, outs [][]any) keyedCall[K, In, Out] {
	return keyedCall[K, In, Out]{call: call[In, Out]{op: name, c: newCtx[Out](n, outs)}, keyOf: keyOf}
}

// newStore makes the empty store of one subtask, or of the plan (rt is nil).
func newStore[K comparable](rt *operator.Runtime) (*statestore.Store, error) {
	key, err := statestore.KeyOf[K]()
	if err != nil {
		return nil, err
	}
	cfg := statestore.Config{Key: key, Range: checkpoint.HashRange{Hi: ^uint64(0)}}
	if rt != nil {
		cfg.Range, cfg.Seed, cfg.Now = rt.Range, rt.HashSeed, rt.Now
	}
	return statestore.New(cfg), nil
}

// bind makes the operator ready but for its state.
func (o *keyedCall[K, In, Out]) bind(rt *operator.Runtime) (err error) {
	o.c.rt = rt
	o.keyAt = -1
	if o.store, err = newStore[K](rt); err != nil {
		return fmt.Errorf("operator %q: %w", o.op, err)
	}
	if o.keyer, err = statestore.KeyerOf[K](o.store); err != nil {
		return fmt.Errorf("operator %q: %w", o.op, err)
	}
	return nil
}

// restore reads what the operator starts from. It may block.
func (o *keyedCall[K, In, Out]) restore(ctx context.Context) error {
	from := o.c.rt.Restore
	if from == nil {
		return nil
	}
	if err := o.store.Restore(ctx, o.c.rt.Store, from.Op.States, from.Objects); err != nil {
		return fmt.Errorf("operator %q: restore from checkpoint %d: %w", o.op, from.ID, err)
	}
	return nil
}

// take puts record i of r and its key in hand. Records are taken in order, from
// the first one.
func (o *keyedCall[K, In, Out]) take(r *element.Run[In], i int) K {
	w := i % ahead
	if w == 0 {
		o.look(r, i)
	}
	o.call.take(r, i)
	k := o.keys[w]
	o.keyer.Set(k, o.hashes[w])
	o.key, o.keyAt = k, i
	return k
}

// look takes the keys of the next records. The hashes came with the records if
// they came over a hash edge.
func (o *keyedCall[K, In, Out]) look(r *element.Run[In], from int) {
	values := r.Values[from:min(from+ahead, len(r.Values))]
	for i := range values {
		o.at = from + i // for Where: the function is the user's
		o.keys[i] = o.keyOf(values[i])
	}
	hashes := o.hashes[:len(values)]
	if r.Hashes != nil {
		copy(hashes, r.Hashes[from:])
	} else {
		o.keyer.HashAll(hashes, o.keys[:len(values)])
	}
	o.store.Prefetch(hashes)
}

// begin starts a slice, and end hands on what it emitted. No key is in hand
// behind it.
func (o *keyedCall[K, In, Out]) begin(r *element.Run[In]) {
	o.c.begin(r.Times)
	o.in, o.keyAt = r, -1
}

func (o *keyedCall[K, In, Out]) end() error {
	o.in, o.timer = nil, false
	clear(o.keys[:]) // keep no record alive
	o.store.EndKey()
	return o.c.flush()
}

// failed wraps an error of user code.
func (o *keyedCall[K, In, Out]) failed(err error) error {
	return fmt.Errorf("operator %q, key %s: %w", o.op, describeKey(o.key), err)
}

func describeKey(k any) string {
	if s, ok := k.(string); ok {
		return fmt.Sprintf("%q", operator.Describe(s))
	}
	return operator.Describe(k)
}

// Where implements operator.Where.
func (o *keyedCall[K, In, Out]) Where() (op, record string) {
	if o.timer {
		return o.op, "timer of key " + describeKey(o.key)
	}
	op, record = o.call.Where()
	if record != "" && o.keyAt == o.at {
		record = "key " + describeKey(o.key) + ", " + record
	}
	return op, record
}

// Snapshot implements operator.Operator.
func (o *keyedCall[K, In, Out]) Snapshot(b checkpoint.Barrier) (operator.Snapshot, error) {
	sn, err := o.store.Snapshot(uint64(b.ID))
	if errors.Is(err, statestore.ErrBusy) {
		return nil, &operator.DeclineError{Reason: checkpoint.Busy, Detail: err.Error()}
	}
	if err != nil {
		return nil, err // the task names the operator
	}
	s := &stateSnapshot{id: b.ID, sn: sn, ack: checkpoint.OperatorAck{
		Operator: o.op, Range: o.c.rt.Range, Watermark: o.c.watermark, Held: o.c.watermark,
	}}
	s.released = func() {
		for i, l := range o.live {
			if l == s {
				o.live = append(o.live[:i], o.live[i+1:]...)
				break
			}
		}
	}
	o.live = append(o.live, s)
	return s, nil
}

// Complete implements operator.Operator.
func (o *keyedCall[K, In, Out]) Complete(id checkpoint.ID) error {
	o.store.Confirm(uint64(id))
	return nil
}

// Abort implements operator.Operator: what is still being written of id stops.
func (o *keyedCall[K, In, Out]) Abort(id checkpoint.ID) error {
	for _, s := range o.live {
		if s.id == id {
			s.sn.Abort()
		}
	}
	return nil
}

// stateSnapshot is a snapshot of a store.
type stateSnapshot struct {
	id       checkpoint.ID
	sn       *statestore.Snapshot
	ack      checkpoint.OperatorAck
	released func()
}

func (s *stateSnapshot) Write(ctx context.Context, p *statefile.Packer) (checkpoint.OperatorAck, error) {
	states, err := s.sn.Write(ctx, p)
	if err != nil {
		return checkpoint.OperatorAck{}, err
	}
	s.ack.States = states
	return s.ack, nil
}

func (s *stateSnapshot) Release() {
	s.sn.Release()
	s.released()
}
