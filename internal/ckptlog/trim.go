package ckptlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/staunchdev/staunch/storage"
)

// Trim appends a Floor that carries all that the log says and deletes the
// records below it. Its errors are those of Append; once the Floor is in, an
// error says only that some records were left for the next Trim.
func (l *Log) Trim(ctx context.Context) error {
	done, err := l.enter()
	if err != nil {
		return err
	}
	defer done()
	if l.pending != nil {
		return fmt.Errorf("append floor: the %s before: %w", l.pending.rec.Record.Kind(), ErrUndecided)
	}
	if err := l.append(ctx, Floor{State: l.view.clone().State}); err != nil {
		return err
	}
	return l.deleteBelow(ctx, l.view.Tail)
}

// deleteBelow deletes what stands below floor, ascending, so that a crash leaves
// no hole that a reader above the Floor before could meet. Slot 0 and Takeovers
// stay: the next slot of a fenced owner is the Takeover that fenced it, and if
// that came free, its append would be admitted.
func (l *Log) deleteBelow(ctx context.Context, floor uint64) error {
	slots, err := listSlots(ctx, l.Store)
	if err != nil {
		return err
	}
	for _, slot := range slots {
		if slot == 0 || slot >= floor {
			continue
		}
		k, err := l.kind(ctx, slot)
		if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) {
			continue // kept as evidence; no reader looks below the floor
		}
		if err != nil {
			return err
		}
		if k == KindTakeover {
			continue
		}
		if err := l.Store.Delete(ctx, Name(slot)); err != nil {
			return fmt.Errorf("trim the checkpoint log: %w", err)
		}
		// Another owner's late create may fill the slot again.
		delete(l.kinds, slot)
	}
	return nil
}

// kind returns the kind of the record in slot, 0 if it is gone.
func (l *Log) kind(ctx context.Context, slot uint64) (Kind, error) {
	if k, known := l.kinds[slot]; known {
		return k, nil
	}
	e, err := readSlot(ctx, l.Store, slot)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	l.kinds[slot] = e.Record.Kind()
	return e.Record.Kind(), nil
}
