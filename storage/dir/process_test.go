package dir_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
)

func TestTemporaryFilesOfTheDeadAreRemoved(t *testing.T) {
	path := t.TempDir()
	living := open(t, path)
	w, err := living.Write(t.Context(), "obj/a")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "still being written")
	// A process that was killed: its lock is free, or a power loss took the lock's
	// entry and left the file's.
	for _, name := range []string{"77-dead.lock", "77-dead-1.tmp", "77-dead-2.tmp", "78-lost-1.tmp"} {
		if err := os.WriteFile(filepath.Join(path, ".tmp", name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open(t, path)
	if temps := temporary(t, path); len(temps) != 1 {
		t.Errorf("left %q, want the file of the living handle only", temps)
	}
	if _, err := os.Stat(path + "/.tmp/77-dead.lock"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock of the dead: %v", err)
	}
	if err := w.Commit(); err != nil {
		t.Errorf("the living writer: %v", err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	if err := s.Create(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	entries, err := os.ReadDir(path + "/.tmp")
	if err != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestLockIsRefusedWhileTheOwnerLives(t *testing.T) {
	path := t.TempDir()
	a, b := open(t, path), open(t, path)
	release, err := a.Lock("owner")
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Lock("owner")
	var held *dir.LockedError
	if !errors.Is(err, dir.ErrLocked) || !errors.As(err, &held) || !strings.Contains(err.Error(), fmt.Sprintf("held by pid %d since 2", os.Getpid())) {
		t.Errorf("second lock: %v", err)
	}
	if other, err := b.Lock("other"); err != nil {
		t.Errorf("another lock: %v", err)
	} else {
		other()
	}
	release()
	again, err := b.Lock("owner")
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	again()
	if infos, err := a.List(t.Context(), ""); err != nil || len(infos) > 0 {
		t.Errorf("locks are listed: %v, %v", infos, err)
	}
}

// TestPrivate is case E13: what a job stores is no other user's business.
func TestPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "store")
	s := open(t, path)
	if err := s.Create(t.Context(), "log/0", []byte("x")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if perm := info.Mode().Perm(); perm&0o077 != 0 {
			t.Errorf("%s has mode %v", p, perm)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestConfined: a symbolic link in the directory does not lead out of it.
func TestConfined(t *testing.T) {
	outside, path := t.TempDir(), t.TempDir()
	if err := os.WriteFile(outside+"/secret", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	if err := os.Symlink(outside, path+"/out"); err != nil {
		t.Fatal(err)
	}
	if b, err := s.ReadAt(t.Context(), "out/secret", 0, -1); err == nil {
		t.Errorf("read %q through a link", b)
	}
	if err := s.Create(t.Context(), "out/new", nil); !errors.Is(err, storage.ErrNotWritten) {
		t.Errorf("create through a link: %v", err)
	}
	if _, err := os.Stat(outside + "/new"); err == nil {
		t.Error("a file was made outside")
	}
}
