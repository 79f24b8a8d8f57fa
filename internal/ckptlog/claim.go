package ckptlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/staunchdev/staunch/storage"
)

// claim is the attempt to fill one slot. It lives until it is known what stands
// there.
type claim struct {
	slot uint64
	rec  framed
	void *framed // set once rec was given up

	// inFlight says that a create without an answer may still land. It is never
	// taken back: that a later create of the same record certainly wrote nothing
	// tells nothing about the earlier one.
	inFlight bool
}

// framed is a record ready to be written.
type framed struct {
	Entry
	bytes []byte
}

func (c Config) frame(slot uint64, r Record) framed {
	e := Entry{Slot: slot, Nonce: c.Nonce(), Record: r}
	return framed{e, Encode(e)}
}

// settle creates f, which is cl.rec or cl.void, again and again until it is
// known which record stands in the slot, and returns that: f, cl's other, or one
// of another owner. Errors are storage.ErrNotWritten (nothing of cl stands or
// will stand there), ErrUndecided, ErrCorrupt, storage.ErrPoisoned.
func (c Config) settle(ctx context.Context, cl *claim, f framed) (Entry, error) {
	name := Name(cl.slot)
	for attempt := 0; ; attempt++ {
		err := c.Store.Create(ctx, name, f.bytes)
		switch {
		case err == nil:
			return f.Entry, nil
		case errors.Is(err, storage.ErrPoisoned):
			// What is read back now may be in the page cache only.
			cl.inFlight = true
			return Entry{}, err
		case errors.Is(err, storage.ErrNotWritten):
			if !cl.inFlight {
				return Entry{}, err
			}
		case !errors.Is(err, storage.ErrExists):
			cl.inFlight = true
		}
		e, rerr := readSlot(ctx, c.Store, cl.slot)
		if rerr == nil {
			return e, nil
		}
		if errors.Is(rerr, ErrCorrupt) || errors.Is(rerr, ErrVersion) {
			return Entry{}, rerr
		}
		// Absent is not "failed": the create may still land. Nor is "exists" and
		// then absent: the record that was there may have been this one, collected
		// since by an owner that built on it.
		cl.inFlight = true
		werr := ctx.Err()
		if werr == nil {
			werr = c.Wait(ctx, attempt)
		}
		if werr != nil {
			return Entry{}, fmt.Errorf("%w: %s: %w (last answer: %w)", ErrUndecided, name, werr, err)
		}
	}
}

// readSlot reads one record; storage.ErrNotFound if there is none.
func readSlot(ctx context.Context, s storage.Store, slot uint64) (Entry, error) {
	b, err := s.ReadAt(ctx, Name(slot), 0, -1)
	if err != nil {
		return Entry{}, fmt.Errorf("read %s: %w", Name(slot), err)
	}
	return Decode(slot, b)
}
