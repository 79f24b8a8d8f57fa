package memstore_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
	"github.com/staunchdev/staunch/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t,
		func(*testing.T) storage.Store { return memstore.New() },
		storagetest.Reopen(func(_ *testing.T, s storage.Store) storage.Store {
			d := s.(*memstore.Store).Disk()
			d.Crash(nil)
			return d.Open()
		}))
}

func TestProbe(t *testing.T) {
	s := memstore.New()
	if err := storage.Probe(t.Context(), s); err != nil {
		t.Error(err)
	}
	if names := s.Disk().Names(); len(names) > 0 {
		t.Errorf("the probe left %q", names)
	}
}

// once returns a hook that gives the first call of verb the outcome.
func once(verb memstore.Verb, out memstore.Outcome) func(memstore.Op) memstore.Outcome {
	done := false
	return func(op memstore.Op) memstore.Outcome {
		if done || op.Verb != verb {
			return memstore.Outcome{}
		}
		done = true
		return out
	}
}

func TestFatesOfACreate(t *testing.T) {
	for _, tt := range []struct {
		name       string
		out        memstore.Outcome
		want       error
		notWritten bool
		there      bool
		landed     bool // after Land
	}{
		{"refused", memstore.Outcome{Fate: memstore.Refuse}, storage.ErrNotWritten, true, false, false},
		{"unreachable", memstore.Unreachable(), storage.ErrUnreachable, true, false, false},
		{"request lost", memstore.Outcome{Fate: memstore.LoseRequest}, memstore.ErrNoReply, false, false, false},
		{"reply lost", memstore.Outcome{Fate: memstore.LoseReply}, memstore.ErrNoReply, false, true, true},
		{"delayed", memstore.Outcome{Fate: memstore.Delay}, memstore.ErrNoReply, false, false, true},
		{"unsynced", memstore.Outcome{Fate: memstore.Unsynced}, memstore.ErrNoReply, false, true, true},
		{"own error", memstore.Outcome{Fate: memstore.LoseReply, Err: io.ErrClosedPipe}, io.ErrClosedPipe, false, true, true},
	} {
		for _, verb := range []memstore.Verb{memstore.Create, memstore.Commit} {
			t.Run(tt.name+" "+verb.String(), func(t *testing.T) {
				s := memstore.New()
				s.Hook = once(verb, tt.out)
				var err error
				if verb == memstore.Create {
					err = s.Create(t.Context(), "x", []byte("x"))
				} else {
					w, werr := s.Write(t.Context(), "x")
					if werr != nil {
						t.Fatal(werr)
					}
					w.Write([]byte("x"))
					err = w.Commit()
				}
				if !errors.Is(err, tt.want) || errors.Is(err, storage.ErrNotWritten) != tt.notWritten {
					t.Errorf("error %v, want %v, not written %v", err, tt.want, tt.notWritten)
				}
				if _, there := s.Disk().Content("x"); there != tt.there {
					t.Errorf("there: %v, want %v", there, tt.there)
				}
				s.Disk().Land()
				if _, there := s.Disk().Content("x"); there != tt.landed {
					t.Errorf("there after landing: %v, want %v", there, tt.landed)
				}
			})
		}
	}
}

func TestDelayedCreateLandsBeforeALaterCall(t *testing.T) {
	s := memstore.New()
	s.Hook = once(memstore.Create, memstore.Outcome{Fate: memstore.Delay, After: 2})
	s.Create(t.Context(), "x", nil)
	for _, want := range []bool{false, true} {
		_, err := s.Stat(t.Context(), "x")
		if there := err == nil; there != want {
			t.Errorf("there: %v, want %v", there, want)
		}
	}
}

func TestDelayedCreateFindsTheNameTaken(t *testing.T) {
	s := memstore.New()
	s.Hook = once(memstore.Create, memstore.Outcome{Fate: memstore.Delay})
	s.Create(t.Context(), "x", []byte("late"))
	s.Create(t.Context(), "x", []byte("early"))
	s.Disk().Land()
	if b, _ := s.Disk().Content("x"); string(b) != "early" {
		t.Errorf("x holds %q", b)
	}
}

func TestReadsFailAsTold(t *testing.T) {
	s := memstore.New()
	s.Create(t.Context(), "x", []byte("0123456789"))
	for _, tt := range []struct {
		out   memstore.Outcome
		bytes string
		err   error
	}{
		{memstore.Outcome{Fate: memstore.Truncate, Keep: 3}, "012", io.ErrUnexpectedEOF},
		{memstore.Outcome{Fate: memstore.Damage, Keep: 1}, "0d23456789", nil},
		{memstore.NotFound(), "", storage.ErrNotFound},
		{memstore.Unreachable(), "", storage.ErrUnreachable},
		{memstore.Outcome{}, "0123456789", nil},
	} {
		s.Hook = once(memstore.ReadAt, tt.out)
		b, err := s.ReadAt(t.Context(), "x", 0, -1)
		if string(b) != tt.bytes || !errors.Is(err, tt.err) {
			t.Errorf("%+v: read %q, %v, want %q, %v", tt.out, b, err, tt.bytes, tt.err)
		}
	}
}

func TestCrash(t *testing.T) {
	keep := func(loss memstore.Loss) func(memstore.Loss, string) bool {
		return func(l memstore.Loss, _ string) bool { return l == loss }
	}
	for _, tt := range []struct {
		name   string
		choose func(memstore.Loss, string) bool
		want   []string
	}{
		{"loses what it may", nil, []string{"durable"}},
		{"lands what was in flight", keep(memstore.Unlanded), []string{"durable", "inflight"}},
		{"keeps what was visible", keep(memstore.Unlinked), []string{"durable", "v/unsynced"}},
		{"undoes deletes", keep(memstore.Undeleted), []string{"deleted", "durable"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			s := memstore.New()
			s.Create(ctx, "durable", nil)
			s.Create(ctx, "deleted", nil)
			s.Delete(ctx, "deleted")
			s.Hook = once(memstore.Create, memstore.Outcome{Fate: memstore.Delay})
			s.Create(ctx, "inflight", nil)
			s.Hook = once(memstore.Create, memstore.Outcome{Fate: memstore.Unsynced})
			s.Create(ctx, "v/unsynced", nil)
			w, _ := s.Write(ctx, "half")
			s.Disk().Crash(tt.choose)
			if got := s.Disk().Names(); !slices.Equal(got, tt.want) {
				t.Errorf("after the crash: %q, want %q", got, tt.want)
			}
			if err := w.Commit(); !errors.Is(err, memstore.ErrDead) {
				t.Errorf("commit by a dead process: %v", err)
			}
			if err := s.Create(ctx, "x", nil); !errors.Is(err, memstore.ErrDead) {
				t.Errorf("create by a dead process: %v", err)
			}
		})
	}
}

func TestNextCreateMakesItsDirectoryDurable(t *testing.T) {
	s := memstore.New()
	s.Hook = once(memstore.Create, memstore.Outcome{Fate: memstore.Unsynced})
	s.Create(t.Context(), "d/1", nil)
	s.Create(t.Context(), "d/2", nil)
	s.Disk().Crash(nil)
	if got := s.Disk().Names(); !slices.Equal(got, []string{"d/1", "d/2"}) {
		t.Errorf("after the crash: %q", got)
	}
}

// TestYieldHoldsNoLock runs a second handle inside the first one's call, as a
// simulator does with coroutines.
func TestYieldHoldsNoLock(t *testing.T) {
	d := memstore.NewDisk()
	a, b := d.Open(), d.Open()
	inner := errors.New("not called")
	a.Yield = func(op memstore.Op) { inner = b.Create(context.Background(), op.Name, []byte("b")) }
	if err := a.Create(t.Context(), "x", []byte("a")); !errors.Is(err, storage.ErrExists) {
		t.Errorf("a: %v, want ErrExists", err)
	}
	if inner != nil {
		t.Error(inner)
	}
}

func TestKill(t *testing.T) {
	d := memstore.NewDisk()
	a, b := d.Open(), d.Open()
	a.Kill()
	if err := a.Create(t.Context(), "x", nil); !errors.Is(err, memstore.ErrDead) {
		t.Error(err)
	}
	if err := b.Create(t.Context(), "x", nil); err != nil {
		t.Error(err)
	}
}
