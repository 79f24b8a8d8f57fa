package ckptlog

import (
	"errors"
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

// TestLostReplyIsReadBack is rule 1: "exists" may be one's own.
func TestLostReplyIsReadBack(t *testing.T) {
	for _, f := range []memstore.Fate{memstore.LoseReply, memstore.LoseRequest, memstore.Delay} {
		s := memstore.New()
		l, _ := takeOver(t, s, "a")
		s.Hook = fate(memstore.Create, "log/", memstore.Outcome{Fate: f, After: 2})
		mustAppend(t, l, ckpt(l, 1), ckpt(l, 2))
		if v, err := Read(t.Context(), s); err != nil || latestID(v) != 2 || v.Tail != 3 {
			t.Errorf("fate %d: %+v, %v", f, v, err)
		}
	}
}

// TestOwnRecordBehindExists: the store's client retried by itself and reports
// "exists" for the caller's own record.
func TestOwnRecordBehindExists(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = fate(memstore.Create, "log/", memstore.Outcome{Fate: memstore.LoseReply, Err: storage.ErrExists})
	mustAppend(t, l, ckpt(l, 1))
}

// TestUndecidedBlocksTheLog is rule 2.
func TestUndecidedBlocksTheLog(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = always(memstore.Create, "log/", memstore.Outcome{Fate: memstore.LoseRequest})
	err := l.Append(t.Context(), ckpt(l, 1))
	if !errors.Is(err, ErrUndecided) || !errors.Is(err, errEnough) || !errors.Is(err, memstore.ErrNoReply) {
		t.Errorf("append: %v", err)
	}
	s.Hook = nil
	if err := l.Append(t.Context(), ckpt(l, 2)); !errors.Is(err, ErrUndecided) {
		t.Errorf("another append: %v, want ErrUndecided", err)
	}
	if err := l.Trim(t.Context()); !errors.Is(err, ErrUndecided) {
		t.Errorf("trim: %v, want ErrUndecided", err)
	}
	if names := s.Disk().Names(); len(names) != 2 {
		t.Errorf("something was written: %q", names)
	}
	if err := l.Retry(t.Context()); err != nil {
		t.Fatalf("retry: %v", err)
	}
	if latestID(l.View()) != 1 {
		t.Error("the record is not in the log")
	}
	mustAppend(t, l, ckpt(l, 2))
}

// TestUndecidedIsNeverNotWritten: the second try certainly wrote nothing, but
// the first is still on its way.
func TestUndecidedIsNeverNotWritten(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = fate(memstore.Create, "log/", memstore.Outcome{Fate: memstore.Delay},
		memstore.Outcome{Fate: memstore.Refuse}, memstore.Outcome{Fate: memstore.Refuse})
	err := l.Append(t.Context(), ckpt(l, 1))
	if !errors.Is(err, ErrUndecided) {
		t.Fatalf("append: %v, want ErrUndecided", err)
	}
	s.Disk().Land()
	if err := l.GiveUp(t.Context()); err != nil {
		t.Errorf("give up: %v, want nil, since the record landed", err)
	}
	if latestID(l.View()) != 1 {
		t.Error("the record is not in the view")
	}
}

func TestGiveUpVoids(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = always(memstore.Create, "log/", memstore.Outcome{Fate: memstore.Delay})
	l.Append(t.Context(), ckpt(l, 7))
	if err := l.GiveUp(t.Context()); !errors.Is(err, ErrUndecided) {
		t.Errorf("give up without an answer: %v, want ErrUndecided", err)
	}
	s.Hook = nil
	// Nothing has landed: the Void of the next try wins, and what is in flight
	// meets it.
	if err := l.GiveUp(t.Context()); !errors.Is(err, ErrVoided) {
		t.Errorf("give up: %v, want ErrVoided", err)
	}
	for s.Disk().Land() {
	}
	mustAppend(t, l, ckpt(l, 8))
	v, err := Read(t.Context(), s)
	if err != nil || latestID(v) != 8 {
		t.Errorf("log: %+v, %v", v, err)
	}
	if _, there := v.ByID(7); there {
		t.Error("the voided checkpoint is in the log")
	}
}

func TestVoidedIDIsNotReused(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = always(memstore.Create, "log/", memstore.Outcome{Fate: memstore.LoseRequest})
	l.Append(t.Context(), ckpt(l, 7))
	s.Hook = nil
	l.GiveUp(t.Context())
	if _, v := takeOver(t, s, "b"); v.NextID() != 8 {
		t.Errorf("next id %d, want 8", v.NextID())
	}
}

// TestVoidInAFreedSlot is the counterexample to a Void without a list (model 19):
// the record landed, another owner built on it and trimmed, and the Void fills
// the slot that came free.
func TestVoidInAFreedSlot(t *testing.T) {
	d := memstore.NewDisk()
	sa := d.Open()
	a, _ := takeOver(t, sa, "a")
	sa.Hook = always(memstore.Create, "log/", memstore.Outcome{Fate: memstore.Delay})
	a.Append(t.Context(), ckpt(a, 1))
	d.Land()
	b, v := takeOver(t, d.Open(), "b")
	if latestID(v) != 1 {
		t.Fatal("b does not see the landed record")
	}
	mustAppend(t, b, ckpt(b, 2))
	if err := b.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	sa.Hook = nil
	if err := a.GiveUp(t.Context()); !errors.Is(err, ErrFenced) {
		t.Errorf("give up: %v, want ErrFenced", err)
	}
}

// TestRecordInAFreedSlot is the mirror of it: the Void landed and its reply was
// lost, another owner built on the log without the record and trimmed, and the
// record, still in flight, fills the slot that came free.
func TestRecordInAFreedSlot(t *testing.T) {
	for _, tt := range []struct {
		name string
		hook func(memstore.Op) memstore.Outcome // of the first try to give up
	}{
		{"reply lost", fate(memstore.Create, "log/", memstore.Outcome{Fate: memstore.LoseReply})},
		{"list failed", fate(memstore.List, "log/", memstore.Unreachable())},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := memstore.NewDisk()
			sa := d.Open()
			a, _ := takeOver(t, sa, "a")
			sa.Hook = fate(memstore.Create, "log/", memstore.Outcome{Fate: memstore.Delay},
				memstore.Outcome{Fate: memstore.LoseRequest}, memstore.Outcome{Fate: memstore.LoseRequest})
			if err := a.Append(t.Context(), ckpt(a, 1)); !errors.Is(err, ErrUndecided) {
				t.Fatal(err)
			}
			rival := func() {
				sa.Yield = nil
				b, v := takeOver(t, d.Open(), "b")
				if latestID(v) != 0 {
					t.Fatalf("b restores %d", latestID(v))
				}
				mustAppend(t, b, ckpt(b, 2))
				if err := b.Trim(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !d.Land() {
					t.Fatal("nothing was in flight")
				}
			}
			sa.Hook = tt.hook
			sa.Yield = func(op memstore.Op) {
				if op.Verb == memstore.ReadAt || op.Verb == memstore.List { // the Void has landed
					rival()
				}
			}
			err := a.GiveUp(t.Context())
			if errors.Is(err, ErrUndecided) {
				err = a.Retry(t.Context())
			}
			if !errors.Is(err, ErrFenced) {
				t.Errorf("give up: %v, want ErrFenced", err)
			}
		})
	}
}

func TestVoidWaitsForTheList(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = always(memstore.Create, "log/", memstore.Outcome{Fate: memstore.LoseRequest})
	l.Append(t.Context(), ckpt(l, 1))
	s.Hook = fate(memstore.List, "log/", memstore.Unreachable())
	if err := l.GiveUp(t.Context()); !errors.Is(err, ErrUndecided) || !errors.Is(err, storage.ErrUnreachable) {
		t.Errorf("give up without a list: %v, want ErrUndecided", err)
	}
	if err := l.Retry(t.Context()); !errors.Is(err, ErrVoided) {
		t.Errorf("retry: %v, want ErrVoided", err)
	}
}
