package inspect_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/inspect"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

var leftovers = []string{"obj/L0-G1-A1-C3-dead", "ckpt/L0-G1-A1-C3-dead"}

// Only what the generation before left goes: not what a checkpoint holds, not
// what the living one may be about to name, not what is not ours.
func TestCollectTakesWhatNobodyCanName(t *testing.T) {
	f := newFixture(t)
	before := f.store.Disk().Names()
	dry, err := inspect.Collect(t.Context(), f.store, true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.store.Disk().Names()); diff != "" {
		t.Fatalf("a dry run changed the store: %s", diff)
	}
	c, err := inspect.Collect(t.Context(), f.store, false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range c.Deleted {
		names = append(names, d.Object)
	}
	if diff := cmp.Diff(leftovers, names); diff != "" {
		t.Error(diff)
	}
	want := slices.DeleteFunc(slices.Clone(before), func(n string) bool { return slices.Contains(leftovers, n) })
	if diff := cmp.Diff(want, f.store.Disk().Names()); diff != "" {
		t.Error(diff)
	}
	if c.DryRun = true; !cmp.Equal(dry, c) {
		t.Errorf("the dry run said otherwise: %s", cmp.Diff(dry, c))
	}
	if c.Bytes != 1000 || c.Left != 1 || c.LeftBytes != 500 {
		t.Errorf("%+v", c)
	}
	if _, err := verified(t, f); err != nil {
		t.Error(err)
	}
}

// A checkpoint that completes while objects are listed keeps its objects, even
// if another start makes its generation an old one meanwhile.
func TestCollectSparesWhatCompletesMeanwhile(t *testing.T) {
	f := newFixture(t)
	f.complete(7, 3000, false, nil) // its objects are listed
	listed := false
	f.store.Hook = func(op memstore.Op) memstore.Outcome {
		if op.Verb == memstore.List && op.Name == checkpoint.ManifestPrefix && !listed {
			listed = true
			f.complete(8, 3000, false, nil)
			f.takeOver("process 3 on host")
		}
		return memstore.Outcome{}
	}
	if _, err := inspect.Collect(t.Context(), f.store, false); err != nil {
		t.Fatal(err)
	}
	f.store.Hook = nil
	if v, err := verified(t, f); err != nil || !slices.Contains(v.Checkpoints, 8) {
		t.Errorf("%+v, %v", v.Checkpoints, err)
	}
}

func TestCollectDeletesNothingBesideAnUnreadableManifest(t *testing.T) {
	for _, missing := range []bool{false, true} {
		f := newFixture(t)
		name := f.named(checkpoint.ManifestPrefix, 1)
		if missing {
			f.check(f.store.Delete(t.Context(), name))
		} else {
			f.flip(name, 40)
		}
		before := f.store.Disk().Names()
		if _, err := inspect.Collect(t.Context(), f.store, false); err == nil {
			t.Error("no error")
		}
		if diff := cmp.Diff(before, f.store.Disk().Names()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestCollectTellsWhatItDeletedBeforeItFailed(t *testing.T) {
	f := newFixture(t)
	f.store.Hook = func(op memstore.Op) (out memstore.Outcome) {
		if op.Verb == memstore.Delete && op.Name == leftovers[1] {
			return memstore.Unreachable()
		}
		return out
	}
	c, err := inspect.Collect(t.Context(), f.store, false)
	if !errors.Is(err, storage.ErrUnreachable) || c == nil || len(c.Deleted) != 1 || c.Deleted[0].Object != leftovers[0] {
		t.Errorf("%+v, %v", c, err)
	}
}
