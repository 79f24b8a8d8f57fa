package ckptlog

import (
	"errors"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage/memstore"
)

func TestFencedOwnerStops(t *testing.T) {
	d := memstore.NewDisk()
	a, _ := takeOver(t, d.Open(), "a")
	mustAppend(t, a, ckpt(a, 1))
	if err := a.Owned(t.Context()); err != nil {
		t.Errorf("owner: %v", err)
	}
	takeOver(t, d.Open(), "process b")
	err := a.Append(t.Context(), ckpt(a, 2))
	if !errors.Is(err, ErrFenced) || !strings.Contains(err.Error(), "process b") {
		t.Errorf("append by a fenced owner: %v", err)
	}
	before := len(d.History())
	for _, err := range []error{a.Append(t.Context(), ckpt(a, 2)), a.Owned(t.Context()), a.Trim(t.Context()), a.Retry(t.Context()), a.GiveUp(t.Context())} {
		if !errors.Is(err, ErrFenced) {
			t.Errorf("later call: %v, want ErrFenced", err)
		}
	}
	if len(d.History()) != before {
		t.Error("a fenced owner changed the store")
	}
}

func TestOwnedSeesTheTakeover(t *testing.T) {
	d := memstore.NewDisk()
	a, _ := takeOver(t, d.Open(), "a")
	takeOver(t, d.Open(), "b")
	if err := a.Owned(t.Context()); !errors.Is(err, ErrFenced) {
		t.Errorf("Owned: %v, want ErrFenced", err)
	}
	if err := a.Append(t.Context(), ckpt(a, 1)); !errors.Is(err, ErrFenced) {
		t.Errorf("append afterwards: %v, want ErrFenced", err)
	}
}

// TestRestorePointIsReadAfterTheTakeover is rule 3 (model 02): the owner before
// appends while the starter climbs.
func TestRestorePointIsReadAfterTheTakeover(t *testing.T) {
	d := memstore.NewDisk()
	a, _ := takeOver(t, d.Open(), "a")
	sb := d.Open()
	id := checkpoint.ID(0)
	sb.Yield = func(op memstore.Op) {
		if op.Verb == memstore.Create && id < 3 {
			id++
			mustAppend(t, a, ckpt(a, id))
		}
	}
	_, v := takeOver(t, sb, "b")
	if latestID(v) != 3 || v.Generation != 5 {
		t.Errorf("b starts from %d in generation %d, want 3 in 5", latestID(v), v.Generation)
	}
}

// TestPausedStarterInATrimmedSlot is rule 3 (model 08): the starter listed, the
// owner filled and trimmed, and the starter's Takeover lands in the gap.
func TestPausedStarterInATrimmedSlot(t *testing.T) {
	d := memstore.NewDisk()
	a, _ := takeOver(t, d.Open(), "a")
	mustAppend(t, a, ckpt(a, 1))
	sb := d.Open()
	paused := true
	sb.Yield = func(op memstore.Op) {
		if op.Verb == memstore.Create && paused {
			paused = false
			mustAppend(t, a, ckpt(a, 2), ckpt(a, 3))
			if err := a.Trim(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err := TakeOver(t.Context(), config(sb, "b"), genesis); !errors.Is(err, ErrFenced) {
		t.Errorf("starter in a gap: %v, want ErrFenced", err)
	}
	mustAppend(t, a, ckpt(a, 4))
	if v, err := Read(t.Context(), d.Open()); err != nil || latestID(v) != 4 {
		t.Errorf("the owner's log: %+v, %v", v, err)
	}
}

// TestStarterListsLast is rule 3 (model 21): a rival's records appear between the
// starter's reading and its decision.
func TestStarterListsLast(t *testing.T) {
	d := memstore.NewDisk()
	a, _ := takeOver(t, d.Open(), "a")
	mustAppend(t, a, ckpt(a, 1))
	sb := d.Open()
	lists := 0
	sb.Yield = func(op memstore.Op) {
		if op.Verb == memstore.List {
			if lists++; lists == 3 { // to find the tail, to read, to decide
				takeOver(t, d.Open(), "c")
			}
		}
	}
	if _, _, err := TakeOver(t.Context(), config(sb, "b"), genesis); !errors.Is(err, ErrFenced) {
		t.Errorf("fenced starter: %v, want ErrFenced", err)
	}
	if lists != 3 {
		t.Errorf("%d lists", lists)
	}
}

// TestEmptyIsProvedByWinningSlotZero is rule 5: a rival begins the log between
// the list and the create.
func TestEmptyIsProvedByWinningSlotZero(t *testing.T) {
	d := memstore.NewDisk()
	sb := d.Open()
	first := true
	sb.Yield = func(op memstore.Op) {
		if op.Verb == memstore.Create && first {
			first = false
			a, _ := takeOver(t, d.Open(), "a")
			mustAppend(t, a, ckpt(a, 1))
		}
	}
	other := genesis
	other.HashSeed, other.JobID = 99, [16]byte{9}
	_, v, err := TakeOver(t.Context(), config(sb, "b"), other)
	if err != nil || v.HashSeed != genesis.HashSeed || v.JobID != genesis.JobID || latestID(v) != 1 {
		t.Errorf("b: %+v, %v; want the log that a began", v, err)
	}
}

func TestOtherJobIsNotTakenOver(t *testing.T) {
	d := memstore.NewDisk()
	a, _ := takeOver(t, d.Open(), "a")
	_, _, err := TakeOver(t.Context(), config(d.Open(), "b"), Genesis{Job: "payments"})
	if !errors.Is(err, ErrOtherJob) {
		t.Errorf("error %v, want ErrOtherJob", err)
	}
	mustAppend(t, a, ckpt(a, 1))
}

// TestNonceTellsRecordsApart is rule 1 (model 16): a record that says the same
// is not the same. Two starts of one process name, at the same slot.
func TestNonceTellsRecordsApart(t *testing.T) {
	d := memstore.NewDisk()
	takeOver(t, d.Open(), "first")
	sb := d.Open()
	creates := 0
	sb.Yield = func(op memstore.Op) {
		if op.Verb == memstore.Create {
			if creates++; creates == 1 {
				takeOver(t, d.Open(), "pod-0")
			}
		}
	}
	if _, v := takeOver(t, sb, "pod-0"); v.Generation != 3 || creates != 2 {
		t.Errorf("generation %d after %d creates, want 3 after 2: slot 2 is another's", v.Generation, creates)
	}

	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	r := ckpt(l, 1)
	s.Disk().Replace(Name(2), Encode(Entry{Slot: 2, Nonce: Nonce{0xff}, Record: r}))
	if err := l.Append(t.Context(), r); !errors.Is(err, ErrFenced) {
		t.Errorf("append of what another has appended: %v, want ErrFenced", err)
	}
}
