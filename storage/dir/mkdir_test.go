package dir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestEntryOfTheStoreIsSynced: whoever made the store's directory may have been
// killed before the sync, and all that is written goes with it.
func TestEntryOfTheStoreIsSynced(t *testing.T) {
	top := t.TempDir()
	var synced []string
	sync := func(dir string) error {
		rel, err := filepath.Rel(top, dir)
		synced = append(synced, rel)
		return err
	}
	for _, step := range []struct {
		path string
		want []string
	}{
		{"a/b/store", []string{"..", ".", "a", "a/b"}}, // the entry of top, which is there, then of each that is made
		{"a/b/store", []string{"a/b"}},
		{"a/b/other", []string{"a", "a/b"}},
	} {
		synced = nil
		if err := mkdirAll(filepath.Join(top, step.path), sync); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(synced, step.want) {
			t.Errorf("%s: synced %q, want %q", step.path, synced, step.want)
		}
	}
	for _, tt := range []struct {
		err     error
		refused bool
	}{{syscall.EIO, true}, {syscall.EACCES, false}, {syscall.EINVAL, false}} {
		err := mkdirAll(top, func(dir string) error { return &os.PathError{Op: "sync", Path: dir, Err: tt.err} })
		if (err != nil) != tt.refused || tt.refused && !errors.Is(err, tt.err) {
			t.Errorf("the sync says %v: %v", tt.err, err)
		}
	}
}
