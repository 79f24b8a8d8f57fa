package ckptlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/staunchdev/staunch/storage"
)

// Config is what a Log works with.
type Config struct {
	Store storage.Store
	// Nonce returns 16 bytes that no other call, in any process, ever returned.
	Nonce func() [16]byte
	// Wait is called between two tries of one create, attempt from 0. Its error
	// ends the tries, undecided.
	Wait func(ctx context.Context, attempt int) error
	// Owner names this process to whom it fences and who fences it.
	Owner string
}

// TakeOver makes the caller the owner of the job: it begins the log with genesis
// if there is none, fences the owner before, and returns what the log says. The
// caller may act on the View, as nothing has been or will be appended to it by
// another.
func TakeOver(ctx context.Context, c Config, genesis Genesis) (*Log, View, error) {
	slots, err := listSlots(ctx, c.Store)
	if err != nil {
		return nil, View{}, err
	}
	if err := c.begin(ctx, len(slots) > 0, genesis); err != nil {
		return nil, View{}, err
	}
	slot := uint64(1)
	if len(slots) > 0 {
		slot = slots[len(slots)-1] + 1
	}
	if slot, err = c.climb(ctx, slot); err != nil {
		return nil, View{}, fmt.Errorf("take the job over: %w", err)
	}
	// Only now is anything read that will be acted on. What was chosen before the
	// Takeover stood in the log could be out of date: the owner before appends
	// until it meets the Takeover.
	v, kinds, err := read(ctx, c.Store, &slot)
	if err != nil {
		return nil, View{}, fmt.Errorf("read the log below takeover %d: %w", slot, err)
	}
	l := &Log{Config: c, view: v, kinds: kinds, next: slot + 1}
	// And the list comes last. Slots below a Floor are free again, and a starter
	// that was paused may have put its Takeover into one of them.
	if err := l.Owned(ctx); err != nil {
		return nil, View{}, fmt.Errorf("after takeover %d: %w", slot, err)
	}
	return l, v.clone(), nil
}

// begin sees to it that slot 0 holds the genesis of this job.
func (c Config) begin(ctx context.Context, nonEmpty bool, g Genesis) error {
	var first Entry
	var err error
	if nonEmpty {
		// Slot 0 is never deleted: if it is gone, nothing may start from scratch.
		first, err = readSlot(ctx, c.Store, 0)
		if errors.Is(err, storage.ErrNotFound) {
			return &CorruptError{Name(0), 0, "record", "genesis, since later records are there", "missing"}
		}
	} else {
		// A list that is empty proves nothing; winning slot 0 does.
		f := c.frame(0, g)
		first, err = c.settle(ctx, &claim{slot: 0, rec: f}, f)
	}
	if err != nil {
		return fmt.Errorf("begin the checkpoint log: %w", err)
	}
	got, ok := first.Record.(Genesis)
	switch {
	case !ok:
		return &CorruptError{Name(0), headSize, "kind", KindGenesis.String(), first.Record.Kind().String()}
	case got.Job != g.Job:
		return fmt.Errorf("%w: %s holds job %q, not %q", ErrOtherJob, c.Store, got.Job, g.Job)
	}
	return nil
}

// climb puts a Takeover into the first free slot from slot on.
func (c Config) climb(ctx context.Context, slot uint64) (uint64, error) {
	for ; ; slot++ {
		f := c.frame(slot, Takeover{Owner: c.Owner})
		e, err := c.settle(ctx, &claim{slot: slot, rec: f}, f)
		if err != nil {
			return 0, err
		}
		if e.Nonce == f.Nonce {
			return slot, nil
		}
	}
}
