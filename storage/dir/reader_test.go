package dir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
)

// everything lists all files below path, hidden ones too.
func everything(t *testing.T, path string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestReaderChangesNothing(t *testing.T) {
	path := t.TempDir()
	if err := os.Mkdir(path+"/obj", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"/obj/a", []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := everything(t, path)
	s, err := dir.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.ReadAt(t.Context(), "obj/a", 0, -1); err != nil || string(b) != "content" {
		t.Errorf("read %q, %v", b, err)
	}
	if infos, err := s.List(t.Context(), "obj/"); err != nil || len(infos) != 1 {
		t.Errorf("list %v, %v", infos, err)
	}
	if err := s.Create(t.Context(), "obj/b", nil); !errors.Is(err, storage.ErrNotWritten) {
		t.Errorf("create: %v", err)
	}
	if err := s.Delete(t.Context(), "obj/a"); err == nil {
		t.Error("deleted")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, everything(t, path)); diff != "" {
		t.Error(diff)
	}
}

func TestReaderNeedsTheDirectory(t *testing.T) {
	path := t.TempDir() + "/missing"
	if _, err := dir.OpenReader(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("open: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
}
