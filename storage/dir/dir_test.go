package dir_test

import (
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
	"github.com/staunchdev/staunch/storage/storagetest"
)

func open(t *testing.T, path string) *dir.Store {
	t.Helper()
	s, err := dir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	paths := map[storage.Store]string{}
	storagetest.Run(t,
		func(t *testing.T) storage.Store {
			path := t.TempDir() + "/a/store"
			s := open(t, path)
			paths[s] = path
			return s
		},
		storagetest.Reopen(func(t *testing.T, s storage.Store) storage.Store {
			s.(*dir.Store).Close()
			return open(t, paths[s])
		}))
}

func TestProbe(t *testing.T) {
	if err := storage.Probe(t.Context(), open(t, t.TempDir())); err != nil {
		t.Error(err)
	}
}
