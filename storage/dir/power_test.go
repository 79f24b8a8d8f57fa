package dir_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
	"github.com/staunchdev/staunch/storage/dir/dirtest"
)

// told is what the store had told its caller about an object.
type told struct {
	name  string
	state string // "created", or "deleting" from the call on
}

// TestPowerLoss replays every prefix of the calls that a workload makes, with
// what was not synced lost, torn or kept, and checks the promises of the
// contract: what was acknowledged is there, and what is there is whole.
func TestPowerLoss(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))

	under, err := dir.OS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	rec := dirtest.NewRecorder(under)
	s, err := dir.Open("recorded", dir.WithFS(rec))
	if err != nil {
		t.Fatal(err)
	}
	contents := workload(t, s, rec)

	images := memoryDir(t)
	for n := range rec.Len() + 1 {
		for i, choice := range []dirtest.Choice{dirtest.DropAll, dirtest.KeepAll, dirtest.EntriesOnly, dirtest.Random(r), dirtest.Random(r)} {
			path := filepath.Join(images, fmt.Sprint(n, "-", i))
			if err := rec.WriteImage(path, n, choice); err != nil {
				t.Fatal(err)
			}
			if err := checkImage(t.Context(), path, contents, rec.Notes(n)); err != nil {
				t.Fatalf("power lost after call %d (%s), choice %d: %v", n, rec.String(max(n-1, 0)), i, err)
			}
		}
	}
	t.Logf("%d calls replayed", rec.Len())
}

func workload(t *testing.T, s *dir.Store, rec *dirtest.Recorder) map[string][]byte {
	ctx := t.Context()
	contents := map[string][]byte{}
	create := func(name string, size int) {
		contents[name] = bytes.Repeat([]byte(name+" "), size)
		if err := s.Create(ctx, name, contents[name]); err != nil {
			t.Fatal(err)
		}
		rec.Note(told{name, "created"})
	}
	remove := func(name string) {
		rec.Note(told{name, "deleting"})
		if err := s.Delete(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
	create("log/0", 1)
	create("log/1", 10)
	w, err := s.Write(ctx, "obj/deep/er/big")
	if err != nil {
		t.Fatal(err)
	}
	contents["obj/deep/er/big"] = bytes.Repeat([]byte("block "), 3000)
	for range 3 {
		io.WriteString(w, string(bytes.Repeat([]byte("block "), 1000)))
	}
	create("log/2", 1)
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	rec.Note(told{"obj/deep/er/big", "created"})
	create("top", 1)
	remove("log/1")
	create("log/3", 2)
	create("obj/deep/other", 5)
	if err := s.Create(ctx, "log/3", []byte("refused")); !errors.Is(err, storage.ErrExists) {
		t.Fatal(err)
	}
	w, err = s.Write(ctx, "obj/dropped")
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "dropped")
	w.Abort()
	create("empty", 0)
	return contents
}

func checkImage(ctx context.Context, path string, contents map[string][]byte, notes []any) error {
	under, err := dir.OS(path)
	if err != nil {
		return err
	}
	s, err := dir.Open(path, dir.WithFS(unsynced{under}))
	if err != nil {
		return err
	}
	defer s.Close()
	infos, err := s.List(ctx, "")
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, in := range infos {
		there[in.Name] = true
		got, err := s.ReadAt(ctx, in.Name, 0, -1)
		if err != nil {
			return err
		}
		if want, known := contents[in.Name]; !known || !bytes.Equal(got, want) {
			return fmt.Errorf("%s is there and holds %d bytes, %.30q, not the %d written", in.Name, len(got), got, len(want))
		}
		if err := s.Create(ctx, in.Name, nil); !errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("second create of %s: %v", in.Name, err)
		}
	}
	must := map[string]bool{}
	for _, n := range notes {
		switch n := n.(type) {
		case told:
			must[n.name] = n.state == "created"
		case seen:
			must[string(n)] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(must)) {
		if must[name] && !there[name] {
			return fmt.Errorf("%s was told to be there and is lost", name)
		}
	}
	return s.Create(ctx, "log/after", []byte("the store can be used"))
}

// unsynced saves the time of syncs that no loss of power follows.
type unsynced struct{ dir.FS }

func (u unsynced) SyncDir(string) error { return nil }

func (u unsynced) Create(name string) (dir.File, error) {
	f, err := u.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

type unsyncedFile struct{ dir.File }

func (unsyncedFile) Sync() error { return nil }
