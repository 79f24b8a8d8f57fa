package ckptlog

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/staunchdev/staunch/storage"
)

// Log is the log as its owner holds it. One call may be outstanding at a time;
// another meanwhile is ErrBusy.
//
// Invariants:
//   - next is the lowest slot that is not known to be filled; what stands below
//     it is folded into view.
//   - pending is not nil while a record of slot next is undecided. Nothing but
//     that record, or a Void, is written until then.
//   - dead, once set, is what every later call returns.
type Log struct {
	Config

	mu   sync.Mutex // guards busy, and is never held over a call of the store
	busy bool

	view    View
	kinds   map[uint64]Kind // of records read or written, for trimming
	next    uint64
	pending *claim
	dead    error
}

// Generation is the slot of the Takeover that made this owner.
func (l *Log) Generation() uint64 { return l.view.Generation }

// View returns what the log says. It must not be called while another call is
// outstanding.
func (l *Log) View() View { return l.view.clone() }

// Undecided says whether the last record is undecided.
func (l *Log) Undecided() bool { return l.pending != nil }

// Append appends r and returns nil once it is in the log.
//
// ErrRefused and storage.ErrNotWritten say that it is certainly not there; the
// log goes on. After ErrUndecided only Retry or GiveUp may follow. After any
// other error the log is dead.
func (l *Log) Append(ctx context.Context, r Record) error {
	done, err := l.enter()
	if err != nil {
		return err
	}
	defer done()
	if l.pending != nil {
		return fmt.Errorf("append %s: the %s before: %w", r.Kind(), l.pending.rec.Record.Kind(), ErrUndecided)
	}
	if k := r.Kind(); k == KindTakeover || k == KindFloor {
		return fmt.Errorf("%w: a %s is not appended by itself", ErrRefused, k)
	}
	return l.append(ctx, r)
}

func (l *Log) append(ctx context.Context, r Record) error {
	if err := l.view.check(l.next, r); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	l.pending = &claim{slot: l.next, rec: l.frame(l.next, r)}
	return l.settlePending(ctx, l.pending.rec)
}

// Retry goes on with the record that is undecided.
func (l *Log) Retry(ctx context.Context) error {
	done, err := l.enter()
	if err != nil {
		return err
	}
	defer done()
	switch {
	case l.pending == nil:
		return errors.New("retry: no record is undecided")
	case l.pending.void != nil:
		return l.giveUp(ctx)
	}
	return l.settlePending(ctx, l.pending.rec)
}

// GiveUp decides what is undecided by trying to fill the slot with a Void. It
// returns nil if the record is in the log after all, ErrVoided if it is not and
// never will be, ErrUndecided if even that is not known yet.
func (l *Log) GiveUp(ctx context.Context) error {
	done, err := l.enter()
	if err != nil {
		return err
	}
	defer done()
	if l.pending == nil {
		return errors.New("give up: no record is undecided")
	}
	return l.giveUp(ctx)
}

func (l *Log) giveUp(ctx context.Context) error {
	p := l.pending
	if p.void == nil {
		f := l.frame(p.slot, Void{ID: voids(p.rec.Record)})
		p.void = &f
	}
	return l.settlePending(ctx, *p.void)
}

// settlePending tries f, the pending record or its Void, and draws the
// conclusion from what stands in the slot.
func (l *Log) settlePending(ctx context.Context, f framed) error {
	p := l.pending
	e, err := l.settle(ctx, p, f)
	switch {
	case errors.Is(err, ErrUndecided):
		return err
	case errors.Is(err, storage.ErrPoisoned), errors.Is(err, ErrCorrupt), errors.Is(err, ErrVersion):
		return l.die(err)
	case err != nil: // nothing was written
		l.pending = nil
		return fmt.Errorf("append %s: %w", f.Record.Kind(), err)
	case p.void != nil && (e.Nonce == p.rec.Nonce || e.Nonce == p.void.Nonce):
		return l.conclude(ctx, p, e)
	case e.Nonce == p.rec.Nonce:
		l.advance(e)
		return nil
	}
	return l.die(fencedBy(e))
}

// conclude decides between the pending record and its Void, one of which was
// found in the slot. That proves nothing by itself, since another owner may have
// taken over, trimmed, and so freed the slot for what came late:
//
//   - The record landed, the other restored and committed it, and the Void
//     filled the slot afterwards. To roll back now would lose it.
//   - The Void landed, its reply was lost, the other went on without the record,
//     and the record filled the slot afterwards. To commit now would repeat it.
//
// Then the other's Takeover stands above, and that is never deleted.
func (l *Log) conclude(ctx context.Context, p *claim, found Entry) error {
	slots, err := listSlots(ctx, l.Store)
	switch {
	case errors.Is(err, ErrCorrupt):
		return l.die(err)
	case err != nil:
		return fmt.Errorf("%w: %s is a %s, but whether anything stands above it is not known: %w",
			ErrUndecided, Name(p.slot), found.Record.Kind(), err)
	case len(slots) == 0:
		return l.die(&CorruptError{Name(0), 0, "record", "genesis, which was read", "missing"})
	}
	if top := slots[len(slots)-1]; top > p.slot {
		return l.die(fenced(ctx, l.Store, top))
	}
	l.advance(found)
	if found.Nonce == p.rec.Nonce {
		return nil
	}
	return fmt.Errorf("%s in %s: %w", p.rec.Record.Kind(), Name(p.slot), ErrVoided)
}

// advance takes in the record that filled slot next.
func (l *Log) advance(e Entry) {
	l.view.fold(e)
	l.kinds[e.Slot] = e.Record.Kind()
	l.next, l.pending = e.Slot+1, nil
}

// Owned returns nil if no other owner had taken over when it was called.
func (l *Log) Owned(ctx context.Context) error {
	done, err := l.enter()
	if err != nil {
		return err
	}
	defer done()
	slots, err := listSlots(ctx, l.Store)
	if err != nil {
		return err
	}
	if len(slots) == 0 || slots[len(slots)-1] < l.view.Tail {
		return l.die(&CorruptError{Name(l.view.Tail), 0, "record", "there, since it was appended", "missing"})
	}
	top := slots[len(slots)-1]
	if l.pending != nil && top == l.next {
		return nil // the undecided record, or a Takeover: the next try tells
	}
	if top >= l.next {
		return l.die(fenced(ctx, l.Store, top))
	}
	return nil
}

// die ends the log with err.
func (l *Log) die(err error) error {
	l.dead = err
	return err
}

// enter admits one call at a time.
func (l *Log) enter() (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		return nil, ErrBusy
	}
	if l.dead != nil {
		return nil, l.dead
	}
	l.busy = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy = false
	}, nil
}
