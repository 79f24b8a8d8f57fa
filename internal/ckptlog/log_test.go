package ckptlog

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

var genesis = Genesis{Job: "orders", JobID: [16]byte{1, 2, 3}, HashID: 1, HashSeed: 42}

var lastNonce atomic.Uint64

func testNonce() (n [16]byte) {
	binary.BigEndian.PutUint64(n[:], lastNonce.Add(1))
	return n
}

var errEnough = errors.New("enough tries")

// config has a Wait that allows three tries.
func config(s storage.Store, owner string) Config {
	return Config{Store: s, Nonce: testNonce, Owner: owner, Wait: func(_ context.Context, attempt int) error {
		if attempt >= 2 {
			return errEnough
		}
		return nil
	}}
}

func takeOver(t *testing.T, s storage.Store, owner string) (*Log, View) {
	t.Helper()
	l, v, err := TakeOver(t.Context(), config(s, owner), genesis)
	if err != nil {
		t.Fatalf("%s takes over: %v", owner, err)
	}
	return l, v
}

func mustAppend(t *testing.T, l *Log, rs ...Record) {
	t.Helper()
	for _, r := range rs {
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatalf("append %+v: %v", r, err)
		}
	}
}

// ckpt is the next checkpoint of l with the given id.
func ckpt(l *Log, id checkpoint.ID) Checkpoint {
	v := l.View()
	latest, _ := v.Latest()
	return Checkpoint{
		ID: id, Lineage: v.Lineage, Parent: latest.ID, Epoch: checkpoint.Epoch{Generation: l.Generation(), Attempt: 1},
		Manifest: Manifest{Name: "ckpt/m", Size: 10, CRC: 7},
	}
}

func latestID(v View) checkpoint.ID {
	c, _ := v.Latest()
	return c.ID
}

// fate gives the calls that match their outcomes, in turn; later ones proceed.
func fate(verb memstore.Verb, name string, outs ...memstore.Outcome) func(memstore.Op) memstore.Outcome {
	return func(op memstore.Op) (out memstore.Outcome) {
		if op.Verb == verb && strings.HasPrefix(op.Name, name) && len(outs) > 0 {
			out, outs = outs[0], outs[1:]
		}
		return out
	}
}

// always gives every matching call the outcome.
func always(verb memstore.Verb, name string, out memstore.Outcome) func(memstore.Op) memstore.Outcome {
	return func(op memstore.Op) memstore.Outcome {
		if op.Verb == verb && strings.HasPrefix(op.Name, name) {
			return out
		}
		return memstore.Outcome{}
	}
}

func TestBeginAndGoOn(t *testing.T) {
	d := memstore.NewDisk()
	a, v := takeOver(t, d.Open(), "a")
	if v.Job != "orders" || v.HashSeed != 42 || v.Generation != 1 || v.NextID() != 1 || v.Tail != 1 {
		t.Errorf("new log: %+v", v)
	}
	if _, there := v.Latest(); there {
		t.Error("a new log has a checkpoint")
	}
	mustAppend(t, a, ckpt(a, 1), ckpt(a, 2))

	b, v := takeOver(t, d.Open(), "b")
	if latestID(v) != 2 || v.NextID() != 3 || v.Generation != 4 || v.Owner != "b" {
		t.Errorf("log taken over: %+v", v)
	}
	mustAppend(t, b, ckpt(b, 3))
	read, err := Read(t.Context(), d.Open())
	if err != nil || latestID(read) != 3 {
		t.Errorf("Read: %+v, %v", read, err)
	}
}

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

func TestNotWrittenLeavesTheLogUsable(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = fate(memstore.Create, "log/", memstore.Outcome{Fate: memstore.Refuse})
	if err := l.Append(t.Context(), ckpt(l, 1)); !errors.Is(err, storage.ErrNotWritten) || l.Undecided() {
		t.Errorf("append: %v, want ErrNotWritten", err)
	}
	mustAppend(t, l, ckpt(l, 2))
	if v, _ := Read(t.Context(), s); latestID(v) != 2 || v.Tail != 2 {
		t.Errorf("log: %+v", v)
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

// TestTrimKeepsWhatFences is rule 4.
func TestTrimKeepsWhatFences(t *testing.T) {
	d := memstore.NewDisk()
	a, _ := takeOver(t, d.Open(), "a")
	mustAppend(t, a, ckpt(a, 1), ckpt(a, 2))
	if err := a.Trim(t.Context()); err != nil { // floor at 4
		t.Fatal(err)
	}
	sb := d.Open()
	b, v := takeOver(t, sb, "b") // at 5
	if latestID(v) != 2 {
		t.Fatalf("after a trim: %+v", v)
	}
	mustAppend(t, b, ckpt(b, 3))
	var deleted []string
	sb.Hook = func(op memstore.Op) memstore.Outcome {
		if op.Verb == memstore.Delete {
			deleted = append(deleted, op.Name)
		}
		return memstore.Outcome{}
	}
	if err := b.Trim(t.Context()); err != nil { // floor at 7
		t.Fatal(err)
	}
	if want := []string{Name(0), Name(1), Name(5), Name(7)}; !slices.Equal(d.Names(), want) {
		t.Errorf("left %q, want genesis, takeovers and the newest floor: %q", d.Names(), want)
	}
	if want := []string{Name(4), Name(6)}; !slices.Equal(deleted, want) {
		t.Errorf("deleted %q, want %q: ascending", deleted, want)
	}
	if err := a.Append(t.Context(), ckpt(a, 3)); !errors.Is(err, ErrFenced) {
		t.Errorf("fenced owner after the trim: %v", err)
	}
}

// TestCrashInTrim: whatever prefix of the deletes was carried out, and whichever
// deletes a crash undoes, the log reads the same.
func TestCrashInTrim(t *testing.T) {
	for deletes := range 6 {
		d := memstore.NewDisk()
		s := d.Open()
		l, _ := takeOver(t, s, "a")
		mustAppend(t, l, ckpt(l, 1), ckpt(l, 2), Pin{"keep", 1}, ckpt(l, 3))
		n := 0
		s.Hook = func(op memstore.Op) memstore.Outcome {
			if op.Verb == memstore.Delete {
				if n++; n > deletes {
					return memstore.Outcome{Fate: memstore.Refuse}
				}
			}
			return memstore.Outcome{}
		}
		l.Trim(t.Context())
		want := l.View()
		odd := false
		d.Crash(func(memstore.Loss, string) bool { odd = !odd; return odd })
		_, got := takeOver(t, d.Open(), "b")
		if latestID(got) != 3 || !got.Pinned(1) || len(got.Checkpoints) != len(want.Checkpoints) {
			t.Errorf("after %d deletes: %+v, want %+v", deletes, got, want)
		}
		b, _ := takeOver(t, d.Open(), "c")
		if err := b.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if names := d.Names(); len(names) != 5 { // genesis, three takeovers, the floor
			t.Errorf("after %d deletes and another trim: %q", deletes, names)
		}
	}
}

// TestLateRecordBelowTheFloorIsIgnored is rule 5: a create that was voided lands
// in the slot that a trim freed.
func TestLateRecordBelowTheFloorIsIgnored(t *testing.T) {
	d := memstore.NewDisk()
	s := d.Open()
	l, _ := takeOver(t, s, "a")
	s.Hook = fate(memstore.Create, "log/", memstore.Outcome{Fate: memstore.Delay}, memstore.Outcome{Fate: memstore.LoseRequest}, memstore.Outcome{Fate: memstore.LoseRequest})
	l.Append(t.Context(), ckpt(l, 1))
	if err := l.GiveUp(t.Context()); !errors.Is(err, ErrVoided) {
		t.Fatal(err)
	}
	mustAppend(t, l, ckpt(l, 2))
	if err := l.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !d.Land() {
		t.Fatal("nothing was in flight")
	}
	if _, there := d.Content(Name(2)); !there {
		t.Fatal("the late record did not land in the freed slot")
	}
	_, v := takeOver(t, d.Open(), "b")
	if _, there := v.ByID(1); there || latestID(v) != 2 {
		t.Errorf("the late record counts: %+v", v)
	}
}

// TestReaderStartsOver: the owner trims while a reader is between two records.
func TestReaderStartsOver(t *testing.T) {
	d := memstore.NewDisk()
	l, _ := takeOver(t, d.Open(), "a")
	mustAppend(t, l, ckpt(l, 1), ckpt(l, 2), ckpt(l, 3))
	r := d.Open()
	reads := 0
	r.Yield = func(op memstore.Op) {
		if op.Verb == memstore.ReadAt {
			if reads++; reads == 2 || reads == 4 {
				mustAppend(t, l, ckpt(l, l.View().NextID()))
				if err := l.Trim(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	v, err := Read(t.Context(), r)
	if err != nil || latestID(v) < 4 {
		t.Errorf("Read: %d, %v", latestID(v), err)
	}
}

func TestMissingRecordIsDamage(t *testing.T) {
	for _, slot := range []uint64{0, 1, 3} {
		d := memstore.NewDisk()
		l, _ := takeOver(t, d.Open(), "a")
		mustAppend(t, l, ckpt(l, 1), ckpt(l, 2), ckpt(l, 3))
		d.Replace(Name(slot), nil)
		_, err := Read(t.Context(), d.Open())
		wantCorrupt(t, err, Name(slot))
		_, _, err = TakeOver(t.Context(), config(d.Open(), "b"), genesis)
		wantCorrupt(t, err, Name(slot))
	}
}

func wantCorrupt(t *testing.T, err error, object string) {
	t.Helper()
	var c *CorruptError
	if !errors.As(err, &c) || !errors.Is(err, ErrCorrupt) || c.Object != object {
		t.Errorf("error %v, want damage of %s", err, object)
	}
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrNotWritten) || errors.Is(err, ErrEmpty) {
		t.Errorf("error %v passes for something harmless", err)
	}
}

// TestDamageInTheWayOfAnAppend: a record that exists but does not parse is not
// "not written".
func TestDamageInTheWayOfAnAppend(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Disk().Replace(Name(2), []byte("torn"))
	wantCorrupt(t, l.Append(t.Context(), ckpt(l, 1)), Name(2))
	wantCorrupt(t, l.Append(t.Context(), ckpt(l, 1)), Name(2))
}

func TestUnreachableIsNotDamage(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	mustAppend(t, l, ckpt(l, 1))
	for _, verb := range []memstore.Verb{memstore.List, memstore.ReadAt} {
		s.Hook = always(verb, "log/", memstore.Unreachable())
		for _, f := range []func() error{
			func() error { _, err := Read(t.Context(), s); return err },
			func() error { _, _, err := TakeOver(t.Context(), config(s, "b"), genesis); return err },
		} {
			if err := f(); !errors.Is(err, storage.ErrUnreachable) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrEmpty) {
				t.Errorf("%s fails: %v, want ErrUnreachable", verb, err)
			}
		}
	}
}

func TestPoisonedStoreEndsTheLog(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = fate(memstore.Create, "log/", memstore.Outcome{Fate: memstore.LoseReply, Err: storage.ErrPoisoned})
	for range 2 {
		if err := l.Append(t.Context(), ckpt(l, 1)); !errors.Is(err, storage.ErrPoisoned) {
			t.Errorf("append: %v, want ErrPoisoned, not what the page cache says", err)
		}
	}
}

func TestEmptyLog(t *testing.T) {
	if _, err := Read(t.Context(), memstore.New()); !errors.Is(err, ErrEmpty) {
		t.Errorf("Read: %v, want ErrEmpty", err)
	}
}

func TestOneCallAtATime(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	var inner error
	s.Yield = func(op memstore.Op) {
		if op.Verb == memstore.Create {
			inner = l.Owned(context.Background())
		}
	}
	mustAppend(t, l, Reserve{})
	if !errors.Is(inner, ErrBusy) {
		t.Errorf("second call: %v, want ErrBusy", inner)
	}
}

func TestCancelledAppendIsNotWritten(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Append(ctx, ckpt(l, 1)); !errors.Is(err, context.Canceled) || !errors.Is(err, storage.ErrNotWritten) || l.Undecided() {
		t.Errorf("append: %v, undecided %v", err, l.Undecided())
	}
	mustAppend(t, l, ckpt(l, 1))
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
