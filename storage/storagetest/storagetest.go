// Package storagetest is the suite that every storage.Store passes.
package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/staunchdev/staunch/storage"
)

// Option adds to what Run tests.
type Option func(*suite)

// Reopen says how to get a new handle on what an open store holds, as a process
// that starts again does.
func Reopen(f func(t *testing.T, s storage.Store) storage.Store) Option {
	return func(u *suite) { u.reopen = f }
}

type suite struct {
	open   func(t *testing.T) storage.Store
	reopen func(t *testing.T, s storage.Store) storage.Store
}

// Run tests the stores that open makes, each of them empty.
func Run(t *testing.T, open func(t *testing.T) storage.Store, options ...Option) {
	u := suite{open: open}
	for _, o := range options {
		o(&u)
	}
	for _, tt := range []struct {
		name string
		run  func(*testing.T, storage.Store)
	}{
		{"CreateIsRefusedTwice", testCreateTwice},
		{"OneCreateWins", testRace},
		{"OneCommitWins", testCommitRace},
		{"ReadRanges", testRanges},
		{"NotFound", testNotFound},
		{"ListIsOrdered", testList},
		{"WriterIsInvisibleUntilCommit", testWriter},
		{"WriterAborts", testAbort},
		{"CommitIsRefusedWhereAnObjectIs", testCommitExists},
		{"BigObject", testBig},
		{"EmptyObject", testEmpty},
		{"DeletedNameIsFree", testDelete},
		{"BadNames", testNames},
		{"CancelledContext", testCancelled},
		{"ContentIsCopied", testCopied},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
	if u.reopen != nil {
		t.Run("Reopen", u.testReopen)
	}
}

func testCreateTwice(t *testing.T, s storage.Store) {
	create(t, s, "a/b", "first")
	if err := s.Create(t.Context(), "a/b", []byte("second")); !errors.Is(err, storage.ErrExists) {
		t.Errorf("second create: %v, want ErrExists", err)
	}
	wantContent(t, s, "a/b", "first")
}

// race lets n goroutines make the same object and checks that one did.
func race(t *testing.T, s storage.Store, makeObject func(name, content string) error) {
	const rivals = 16
	for round := range 5 {
		name := fmt.Sprintf("race/%d", round)
		start := make(chan struct{})
		errs := make([]error, rivals)
		var wg sync.WaitGroup
		for i := range rivals {
			wg.Go(func() {
				<-start
				errs[i] = makeObject(name, content(i))
			})
		}
		close(start)
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Errorf("%s: both %d and %d won", name, winner, i)
			case !errors.Is(err, storage.ErrExists):
				t.Errorf("%s: rival %d: %v, want ErrExists", name, i, err)
			}
		}
		if winner < 0 {
			t.Fatalf("%s: nobody won", name)
		}
		wantContent(t, s, name, content(winner))
	}
}

func content(rival int) string { return strings.Repeat(fmt.Sprintf("rival %02d ", rival), 1000) }

func testRace(t *testing.T, s storage.Store) {
	race(t, s, func(name, content string) error { return s.Create(t.Context(), name, []byte(content)) })
}

func testCommitRace(t *testing.T, s storage.Store) {
	race(t, s, func(name, content string) error {
		w, err := s.Write(t.Context(), name)
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := io.WriteString(w, content); err != nil {
			return err
		}
		return w.Commit()
	})
}

func testRanges(t *testing.T, s storage.Store) {
	create(t, s, "r", "0123456789")
	for _, tt := range []struct {
		off, n int64
		want   string
		short  bool
	}{
		{0, 10, "0123456789", false},
		{0, -1, "0123456789", false},
		{3, 4, "3456", false},
		{3, -1, "3456789", false},
		{9, 1, "9", false},
		{10, 0, "", false},
		{10, -1, "", false},
		{4, 0, "", false},
		{8, 3, "", true},
		{10, 1, "", true},
		{11, 1, "", true},
		{11, -1, "", true},
		{1 << 40, 1, "", true},
	} {
		b, err := s.ReadAt(t.Context(), "r", tt.off, tt.n)
		switch {
		case tt.short && !errors.Is(err, io.ErrUnexpectedEOF):
			t.Errorf("ReadAt(%d, %d) = %q, %v, want io.ErrUnexpectedEOF", tt.off, tt.n, b, err)
		case !tt.short && (err != nil || string(b) != tt.want):
			t.Errorf("ReadAt(%d, %d) = %q, %v, want %q", tt.off, tt.n, b, err, tt.want)
		}
	}
}

func testNotFound(t *testing.T, s storage.Store) {
	check := func(name string) {
		t.Helper()
		if _, err := s.ReadAt(t.Context(), name, 0, 1); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("ReadAt(%s): %v, want ErrNotFound", name, err)
		}
		if _, err := s.Stat(t.Context(), name); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("Stat(%s): %v, want ErrNotFound", name, err)
		}
		if err := s.Delete(t.Context(), name); err != nil {
			t.Errorf("Delete(%s): %v, want nil", name, err)
		}
	}
	check("missing")
	check("no/such/place")
	create(t, s, "d/object", "x")
	check("d")
	check("d/other")
	wantContent(t, s, "d/object", "x")
}

func testList(t *testing.T, s storage.Store) {
	for _, name := range []string{"log/2", "log/10", "log/1", "log-2", "log.x/1", "logs/a/b/c", "z", "log/1.a"} {
		create(t, s, name, name)
	}
	for _, tt := range []struct {
		prefix string
		want   []string
	}{
		{"", []string{"log-2", "log.x/1", "log/1", "log/1.a", "log/10", "log/2", "logs/a/b/c", "z"}},
		{"log", []string{"log-2", "log.x/1", "log/1", "log/1.a", "log/10", "log/2", "logs/a/b/c"}},
		{"log/", []string{"log/1", "log/1.a", "log/10", "log/2"}},
		{"log/1", []string{"log/1", "log/1.a", "log/10"}},
		{"logs/a/b", []string{"logs/a/b/c"}},
		{"none/", nil},
		{"z/", nil},
	} {
		infos, err := s.List(t.Context(), tt.prefix)
		if err != nil {
			t.Fatalf("List(%q): %v", tt.prefix, err)
		}
		var got []string
		for _, in := range infos {
			got = append(got, in.Name)
			if in.Size != int64(len(in.Name)) {
				t.Errorf("List(%q): %s has size %d, want %d", tt.prefix, in.Name, in.Size, len(in.Name))
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("List(%q) = %q, want %q", tt.prefix, got, tt.want)
		}
	}
}

func testWriter(t *testing.T, s storage.Store) {
	w, err := s.Write(t.Context(), "obj/w")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := io.WriteString(w, "part "); err != nil {
			t.Fatal(err)
		}
		wantAbsent(t, s, "obj/w")
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	w.Abort() // does nothing any more
	wantContent(t, s, "obj/w", "part part part ")
	if _, err := io.WriteString(w, "late"); err == nil {
		t.Error("Write after Commit succeeded")
	}
	if err := w.Commit(); err == nil {
		t.Error("second Commit succeeded")
	}
	wantContent(t, s, "obj/w", "part part part ")
}

func testAbort(t *testing.T, s storage.Store) {
	w, err := s.Write(t.Context(), "obj/a")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "dropped")
	w.Abort()
	w.Abort()
	if err := w.Commit(); err == nil {
		t.Error("Commit after Abort succeeded")
	}
	wantAbsent(t, s, "obj/a")
	create(t, s, "obj/a", "the name is free")
}

func testCommitExists(t *testing.T, s storage.Store) {
	w, err := s.Write(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "late")
	create(t, s, "x", "early")
	if err := w.Commit(); !errors.Is(err, storage.ErrExists) {
		t.Errorf("Commit: %v, want ErrExists", err)
	}
	wantContent(t, s, "x", "early")
}

func testBig(t *testing.T, s storage.Store) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, 9<<20+17)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	w, err := s.Write(t.Context(), "obj/big")
	if err != nil {
		t.Fatal(err)
	}
	for rest := b; len(rest) > 0; {
		n := min(len(rest), 1+r.IntN(1<<20))
		if m, err := w.Write(rest[:n]); err != nil || m != n {
			t.Fatalf("Write = %d, %v, want %d", m, err, n)
		}
		rest = rest[n:]
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	if in, err := s.Stat(t.Context(), "obj/big"); err != nil || in.Size != int64(len(b)) {
		t.Errorf("Stat = %v, %v, want size %d", in, err, len(b))
	}
	for range 20 {
		off := r.Int64N(int64(len(b)))
		n := r.Int64N(int64(len(b)) - off + 1)
		got, err := s.ReadAt(t.Context(), "obj/big", off, n)
		if err != nil || !bytes.Equal(got, b[off:off+n]) {
			t.Fatalf("ReadAt(%d, %d): wrong bytes, or %v", off, n, err)
		}
	}
}

func testEmpty(t *testing.T, s storage.Store) {
	create(t, s, "empty", "")
	wantContent(t, s, "empty", "")
	if err := s.Create(t.Context(), "empty", []byte("x")); !errors.Is(err, storage.ErrExists) {
		t.Errorf("create over an empty object: %v, want ErrExists", err)
	}
}

func testDelete(t *testing.T, s storage.Store) {
	create(t, s, "d/1", "a")
	create(t, s, "d/2", "b")
	for range 2 {
		if err := s.Delete(t.Context(), "d/1"); err != nil {
			t.Fatal(err)
		}
		wantAbsent(t, s, "d/1")
	}
	wantContent(t, s, "d/2", "b")
	create(t, s, "d/1", "c")
	wantContent(t, s, "d/1", "c")
}

func testNames(t *testing.T, s storage.Store) {
	ctx := t.Context()
	for _, name := range []string{"", "/", "/etc/x", "a//b", "a/", "../x", "a/../b", "a/./b", ".", "..", ".hidden", "a/.tmp",
		"a\x00b", `a\b`, "c:x", "\xff", strings.Repeat("x", 300), strings.Repeat("x/", 1000) + "x"} {
		if err := s.Create(ctx, name, nil); !errors.Is(err, storage.ErrName) || !errors.Is(err, storage.ErrNotWritten) {
			t.Errorf("Create(%.20q): %v, want ErrName and ErrNotWritten", name, err)
		}
		if _, err := s.Write(ctx, name); !errors.Is(err, storage.ErrName) {
			t.Errorf("Write(%.20q): %v, want ErrName", name, err)
		}
		if _, err := s.ReadAt(ctx, name, 0, 1); !errors.Is(err, storage.ErrName) {
			t.Errorf("ReadAt(%.20q): %v, want ErrName", name, err)
		}
		if _, err := s.Stat(ctx, name); !errors.Is(err, storage.ErrName) {
			t.Errorf("Stat(%.20q): %v, want ErrName", name, err)
		}
		if err := s.Delete(ctx, name); !errors.Is(err, storage.ErrName) {
			t.Errorf("Delete(%.20q): %v, want ErrName", name, err)
		}
	}
	if infos, err := s.List(ctx, ""); err != nil || len(infos) > 0 {
		t.Errorf("List = %v, %v, want nothing", infos, err)
	}
	create(t, s, "a=b+c,d~e f/ä-1..2", "odd but fine")
	wantContent(t, s, "a=b+c,d~e f/ä-1..2", "odd but fine")
}

func testCancelled(t *testing.T, s storage.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Create(ctx, "x", nil); !errors.Is(err, context.Canceled) || !errors.Is(err, storage.ErrNotWritten) {
		t.Errorf("Create: %v, want Canceled and ErrNotWritten", err)
	}
	if _, err := s.List(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("List: %v, want Canceled", err)
	}
	if _, err := s.ReadAt(ctx, "x", 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("ReadAt: %v, want Canceled", err)
	}
	wantAbsent(t, s, "x")
}

func testCopied(t *testing.T, s storage.Store) {
	b := []byte("original")
	if err := s.Create(t.Context(), "x", b); err != nil {
		t.Fatal(err)
	}
	copy(b, "scribble")
	got, err := s.ReadAt(t.Context(), "x", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	copy(got, "scribble")
	wantContent(t, s, "x", "original")
}

func (u suite) testReopen(t *testing.T) {
	s := u.open(t)
	create(t, s, "log/1", "one")
	create(t, s, "obj/a/b", "two")
	w, err := s.Write(t.Context(), "obj/half")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "never committed")
	s = u.reopen(t, s)
	wantContent(t, s, "log/1", "one")
	wantContent(t, s, "obj/a/b", "two")
	wantAbsent(t, s, "obj/half")
	if err := s.Create(t.Context(), "log/1", nil); !errors.Is(err, storage.ErrExists) {
		t.Errorf("create after reopening: %v, want ErrExists", err)
	}
	create(t, s, "log/2", "three")
}

func create(t *testing.T, s storage.Store, name, content string) {
	t.Helper()
	if err := s.Create(t.Context(), name, []byte(content)); err != nil {
		t.Fatalf("Create(%q): %v", name, err)
	}
}

func wantContent(t *testing.T, s storage.Store, name, want string) {
	t.Helper()
	got, err := s.ReadAt(t.Context(), name, 0, -1)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %.40q (%d bytes), %v; want %.40q (%d bytes)", name, got, len(got), err, want, len(want))
	}
	if in, err := s.Stat(t.Context(), name); err != nil || in.Size != int64(len(want)) || in.Name != name {
		t.Errorf("Stat(%s) = %+v, %v, want size %d", name, in, err, len(want))
	}
}

func wantAbsent(t *testing.T, s storage.Store, name string) {
	t.Helper()
	if _, err := s.Stat(t.Context(), name); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("Stat(%s): %v, want ErrNotFound", name, err)
	}
	infos, err := s.List(t.Context(), name)
	if err != nil || slices.ContainsFunc(infos, func(in storage.Info) bool { return in.Name == name }) {
		t.Errorf("List finds %s, or fails: %v", name, err)
	}
}
