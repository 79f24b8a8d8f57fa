package dir_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
	"github.com/staunchdev/staunch/storage/dir/dirtest"
)

// seen is what a store has told its caller of an object that it did not make
// itself: what the caller does from here on relies on it.
type seen string

// ways are the calls by which a caller may learn that name is there.
var ways = map[string]func(ctx context.Context, s *dir.Store, name string) (bool, error){
	"list": func(ctx context.Context, s *dir.Store, name string) (bool, error) {
		infos, err := s.List(ctx, "")
		return slices.ContainsFunc(infos, func(i storage.Info) bool { return i.Name == name }), err
	},
	"stat": func(ctx context.Context, s *dir.Store, name string) (bool, error) {
		_, err := s.Stat(ctx, name)
		return answered(err, nil)
	},
	"read": func(ctx context.Context, s *dir.Store, name string) (bool, error) {
		_, err := s.ReadAt(ctx, name, 0, -1)
		return answered(err, nil)
	},
	"create": func(ctx context.Context, s *dir.Store, name string) (bool, error) {
		return answered(s.Create(ctx, name, content(name)), storage.ErrExists)
	},
	"commit": func(ctx context.Context, s *dir.Store, name string) (bool, error) {
		w, err := s.Write(ctx, name)
		if err != nil {
			return false, err
		}
		w.Write(content(name))
		return answered(w.Commit(), storage.ErrExists)
	},
}

// answered tells an answer "it is there" from "it was not" and from a fault.
func answered(err, there error) (bool, error) {
	switch {
	case errors.Is(err, there):
		return true, nil
	case err == nil, errors.Is(err, storage.ErrNotFound):
		return false, nil
	}
	return false, err
}

func content(name string) []byte { return []byte("content of " + name) }

// TestKillThenPowerLoss kills a process after each of its calls, starts another
// one on what is visible then, and lets the power fail after each of its calls.
// What the second one was told must be there, for what it does next may be.
func TestKillThenPowerLoss(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"log/0", "log/1", "obj/deep/er/a", "log/2"}
	under, err := dir.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first := dirtest.NewRecorder(under)
	s, err := dir.Open("first", dir.WithFS(first))
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string][]byte{"log/3": content("log/3"), "obj/b": content("obj/b")}
	for _, name := range names {
		contents[name] = content(name)
		if err := s.Create(t.Context(), name, contents[name]); err != nil {
			t.Fatal(err)
		}
		first.Note(told{name, "created"})
	}
	pairs, images := 0, memoryDir(t)
	for k := range first.Len() + 1 {
		// All ways where a name was just made, and one elsewhere.
		learn := slices.Sorted(maps.Keys(ways))
		if k == 0 || !first.Unsynced(k-1) {
			if testing.Short() {
				continue
			}
			learn = learn[k%len(learn):][:1]
		}
		for _, way := range learn {
			second := startAfterKill(t, first, k, filepath.Join(images, "second"), func(s *dir.Store, rec *dirtest.Recorder) {
				for _, name := range names {
					there, err := ways[way](t.Context(), s, name)
					if err != nil {
						t.Fatal(err)
					}
					if there {
						rec.Note(seen(name))
					}
				}
				for _, name := range []string{"log/3", "obj/b"} {
					if err := s.Create(t.Context(), name, contents[name]); err != nil {
						t.Fatal(err)
					}
					rec.Note(told{name, "created"})
				}
			})
			for n := k; n <= second.Len(); n++ {
				pairs++
				for i, choice := range []dirtest.Choice{dirtest.DropAll, second.Since(k), dirtest.Random(r)} {
					path := filepath.Join(images, "image")
					if err := second.WriteImage(path, n, choice); err != nil {
						t.Fatal(err)
					}
					if err := checkImage(t.Context(), path, contents, second.Notes(n)); err != nil {
						t.Fatalf("learned by %s: killed after call %d (%s), power lost after call %d (%s), choice %d: %v",
							way, k, first.String(max(k-1, 0)), n, second.String(max(n-1, 0)), i, err)
					}
					os.RemoveAll(path)
				}
			}
		}
	}
	t.Logf("%d pairs of a kill and a loss of power", pairs)
}

// startAfterKill runs a process where the recorded one was killed after k calls.
func startAfterKill(t *testing.T, first *dirtest.Recorder, k int, path string, run func(*dir.Store, *dirtest.Recorder)) *dirtest.Recorder {
	t.Helper()
	if err := first.WriteImage(path, k, dirtest.KeepAll); err != nil {
		t.Fatal(err)
	}
	under, err := dir.OS(path)
	if err != nil {
		t.Fatal(err)
	}
	rec := first.Killed(k, unsynced{under})
	s, err := dir.Open("second", dir.WithFS(rec))
	if err != nil {
		t.Fatal(err)
	}
	run(s, rec)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(path)
	return rec
}

// memoryDir is a directory in memory where there is one: thousands of images on
// a disk take most of the time.
func memoryDir(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("/dev/shm", "staunch-dir")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

// TestNamesOfTheLivingAreMadeDurable is the same with a first process that lives
// and has not come to its sync yet. The second one was opened before the first
// made the name, and even its directories.
func TestNamesOfTheLivingAreMadeDurable(t *testing.T) {
	for way, learn := range ways {
		t.Run(way, func(t *testing.T) {
			under, err := dir.OS(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			rec := dirtest.NewRecorder(under)
			second, err := dir.Open("second", dir.WithFS(rec))
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			first, err := dir.Open("first", dir.WithFS(beforeItsSyncs{rec}))
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			contents := map[string][]byte{}
			for _, name := range []string{"log/0", "obj/deep/a", "log/1"} {
				contents[name] = content(name)
				if err := first.Create(t.Context(), name, contents[name]); err != nil {
					t.Fatal(err)
				}
				if there, err := learn(t.Context(), second, name); err != nil || !there {
					t.Fatalf("%s: %v, %v", name, there, err)
				}
				rec.Note(seen(name))
			}
			path := t.TempDir()
			if err := rec.WriteImage(path, rec.Len(), dirtest.DropAll); err != nil {
				t.Fatal(err)
			}
			if err := checkImage(t.Context(), path, contents, rec.Notes(rec.Len())); err != nil {
				t.Error(err)
			}
		})
	}
}

// beforeItsSyncs makes names and comes to no sync of a directory.
type beforeItsSyncs struct{ dir.FS }

func (beforeItsSyncs) SyncDir(string) error { return nil }

// TestSyncsOfDirectoriesAreFew: once a name is known to be durable, telling it
// costs nothing.
func TestSyncsOfDirectoriesAreFew(t *testing.T) {
	path := t.TempDir()
	before := open(t, path)
	for i := range 10 {
		if err := before.Create(t.Context(), fmt.Sprintf("log/%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	under, err := dir.OS(path)
	if err != nil {
		t.Fatal(err)
	}
	counted := &counting{FS: under}
	s, err := dir.Open(path, dir.WithFS(counted))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 3 {
		if _, err := s.List(t.Context(), "log/"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ReadAt(t.Context(), "log/3", 0, -1); err != nil {
			t.Fatal(err)
		}
	}
	if counted.syncs != 2 {
		t.Errorf("%d syncs for reading, want one of the root and one of log", counted.syncs)
	}
	if err := s.Create(t.Context(), "log/10", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if counted.syncs != 3 {
		t.Errorf("%d syncs, want one more, of the create", counted.syncs)
	}
}

type counting struct {
	dir.FS
	syncs int
}

func (c *counting) SyncDir(name string) error {
	c.syncs++
	return c.FS.SyncDir(name)
}
