package ckptlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/staunchdev/staunch/storage"
)

// Read returns what the log says, for verbs that only look. It needs no owner
// and may run beside one.
func Read(ctx context.Context, s storage.Store) (View, error) {
	v, _, err := read(ctx, s, nil)
	return v, err
}

// read folds the log from its newest Floor, up to slot upto, or to the end if it
// is nil. A slot above upto is ErrFenced. It also returns the kinds of the
// records it read.
//
// Records are read one by one while an owner may be trimming. One that was
// listed and is gone, or a gap, says that what was read is out of date: start
// over. If the list is the same then, nobody is trimming, and the record is lost.
func read(ctx context.Context, s storage.Store, upto *uint64) (View, map[uint64]Kind, error) {
	var before []uint64
	for again := false; ; again = true {
		slots, err := listSlots(ctx, s)
		if err != nil {
			return View{}, nil, err
		}
		if len(slots) == 0 && upto == nil {
			return View{}, nil, fmt.Errorf("%w in %s", ErrEmpty, s)
		}
		if upto != nil && len(slots) > 0 && slots[len(slots)-1] > *upto {
			return View{}, nil, fenced(ctx, s, slots[len(slots)-1])
		}
		entries, missing, err := readDown(ctx, s, slots, upto)
		if err != nil {
			return View{}, nil, err
		}
		if missing == nil {
			return foldAll(entries)
		}
		if again && slices.Equal(slots, before) {
			return View{}, nil, &CorruptError{Name(*missing), 0, "record", "there, since later ones are and no floor replaces it", "missing"}
		}
		before = slots
	}
}

// readDown reads from the last of slots down to the newest Floor, or to slot 0,
// and returns what it read in ascending order; or the slot that was missing.
func readDown(ctx context.Context, s storage.Store, slots []uint64, upto *uint64) (entries []Entry, missing *uint64, err error) {
	var next uint64
	if upto != nil {
		next = *upto
	} else {
		next = slots[len(slots)-1]
	}
	for {
		if !slices.Contains(slots, next) {
			return nil, &next, nil
		}
		e, err := readSlot(ctx, s, next)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, &next, nil
		}
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, e)
		if next == 0 || e.Record.Kind() == KindFloor {
			slices.Reverse(entries)
			return entries, nil, nil
		}
		next--
	}
}

// foldAll folds entries, which begin with a Genesis or a Floor.
func foldAll(entries []Entry) (View, map[uint64]Kind, error) {
	var v View
	kinds := make(map[uint64]Kind, len(entries))
	for i, e := range entries {
		kinds[e.Slot] = e.Record.Kind()
		var err error
		if f, ok := e.Record.(Floor); ok && i == 0 {
			err = f.State.whole()
		} else {
			err = v.check(e.Slot, e.Record)
		}
		if err != nil {
			return View{}, nil, &CorruptError{Name(e.Slot), headSize, "record", "one that can follow the log below it", err.Error()}
		}
		v.fold(e)
	}
	return v, kinds, nil
}

// listSlots returns the slots that are filled, ascending.
func listSlots(ctx context.Context, s storage.Store) ([]uint64, error) {
	infos, err := s.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the checkpoint log: %w", err)
	}
	slots := make([]uint64, 0, len(infos))
	for _, in := range infos {
		slot, err := strconv.ParseUint(strings.TrimPrefix(in.Name, prefix), 10, 64)
		if err != nil || Name(slot) != in.Name {
			return nil, &CorruptError{in.Name, 0, "name", "log/ and 20 digits", in.Name}
		}
		slots = append(slots, slot)
	}
	return slots, nil
}

// fenced makes the error of an owner that found slot taken, and says by whom if
// that can be read.
func fenced(ctx context.Context, s storage.Store, slot uint64) error {
	e, err := readSlot(ctx, s, slot)
	if err != nil {
		return fmt.Errorf("%w: %s is there", ErrFenced, Name(slot))
	}
	return fencedBy(e)
}

func fencedBy(e Entry) error {
	if t, ok := e.Record.(Takeover); ok {
		return fmt.Errorf("%w: %s is the takeover of %s", ErrFenced, Name(e.Slot), t.Owner)
	}
	return fmt.Errorf("%w: %s is a %s record of another owner", ErrFenced, Name(e.Slot), e.Record.Kind())
}
