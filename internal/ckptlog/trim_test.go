package ckptlog

import (
	"errors"
	"slices"
	"testing"

	"github.com/staunchdev/staunch/storage/memstore"
)

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
