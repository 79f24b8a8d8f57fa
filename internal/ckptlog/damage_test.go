package ckptlog

import (
	"errors"
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

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
