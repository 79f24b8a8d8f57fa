package inspect_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/inspect"
	"github.com/staunchdev/staunch/storage/memstore"
)

// named is the object of a checkpoint that it names, not a leftover.
func (f *fixture) named(prefix string, id checkpoint.ID) string {
	f.t.Helper()
	for _, name := range f.store.Disk().Names() {
		if o, ok := checkpoint.ParseName(name); ok && o.ID == id && strings.HasPrefix(name, prefix) {
			return name
		}
	}
	f.t.Fatalf("no %s of checkpoint %d", prefix, id)
	return ""
}

// flip changes one byte of an object.
func (f *fixture) flip(name string, at int) {
	b, _ := f.store.Disk().Content(name)
	b = bytes.Clone(b)
	b[at] ^= 0x40
	f.store.Disk().Replace(name, b)
}

// wantFault checks that object, and nothing else, has faults of one kind.
func wantFault(t *testing.T, what string, v *inspect.Verification, err error, object string, kind inspect.FaultKind) []inspect.Fault {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var found []inspect.Fault
	for _, o := range v.Objects {
		for _, f := range o.Faults {
			if f.Object != object || o.Object != object || f.Kind != kind {
				t.Fatalf("%s: fault %+v of %s", what, f, o.Object)
			}
			if kind == inspect.Damaged && (f.What == "" || f.Expected == f.Found) {
				t.Fatalf("%s: fault %+v says nothing", what, f)
			}
			found = append(found, f)
		}
	}
	if len(found) == 0 || len(found) != v.Faults {
		t.Fatalf("%s: %d faults, counted %d", what, len(found), v.Faults)
	}
	return found
}

// What is changed or cut anywhere is seen, and named. Flips go in steps, denser
// outside of the blocks; the formats' own tests try every byte.
func TestVerifySeesFlippedBytes(t *testing.T) {
	f := newFixture(t)
	for _, prefix := range []string{checkpoint.ObjectPrefix, checkpoint.ManifestPrefix} {
		name := f.named(prefix, 1)
		whole, _ := f.store.Disk().Content(name)
		for at := 0; at < len(whole); at++ {
			if at%9973 != 0 && (at%5 != 0 || at > 64 && at < len(whole)-300) {
				continue
			}
			f.flip(name, at)
			v, err := inspect.Verify(t.Context(), f.store, 1, nil)
			wantFault(t, fmt.Sprintf("%s, byte %d", name, at), v, err, name, inspect.Damaged)
			f.store.Disk().Replace(name, whole)
		}
		f.store.Disk().Replace(name, whole[:len(whole)-1])
		v, err := inspect.Verify(t.Context(), f.store, 1, nil)
		wantFault(t, name+" cut", v, err, name, inspect.Damaged)
		f.store.Disk().Replace(name, whole)
	}
	if _, err := verified(t, f); err != nil {
		t.Error(err)
	}
}

// Each damaged block is named, not only the first.
func TestVerifyNamesEveryDamagedBlock(t *testing.T) {
	f := newFixture(t)
	name := f.named(checkpoint.ObjectPrefix, 5)
	whole, _ := f.store.Disk().Content(name)
	for at := 200; at < len(whole); at += 50_000 {
		f.flip(name, at)
	}
	v, err := inspect.Verify(t.Context(), f.store, 5, nil)
	blocks := map[[2]int64]bool{}
	for _, fault := range wantFault(t, "flips", v, err, name, inspect.Damaged) {
		if fault.Block == nil || !strings.Contains(fault.Run, "state balance") {
			t.Fatalf("%+v", fault)
		}
		blocks[[2]int64{int64(*fault.Block), fault.Offset}] = true
	}
	if len(blocks) < 3 {
		t.Errorf("damaged blocks: %v", blocks)
	}
	var text strings.Builder
	i := slices.IndexFunc(v.Objects, func(o inspect.Verified) bool { return len(o.Faults) > 0 })
	v.Objects[i].WriteText(&text)
	if want := "DAMAGED  " + name + " (checkpoint 5): damaged: block 0, offset 32: "; !strings.HasPrefix(text.String(), want) {
		t.Errorf("%s, want %s", text.String(), want)
	}
}

func TestVerifyTellsMissingFromUnreachable(t *testing.T) {
	for _, prefix := range []string{checkpoint.ObjectPrefix, checkpoint.ManifestPrefix} {
		f := newFixture(t)
		name := f.named(prefix, 2)
		f.check(f.store.Delete(t.Context(), name))
		v, err := inspect.Verify(t.Context(), f.store, 0, nil)
		wantFault(t, "deleted", v, err, name, inspect.Missing)
	}
	f := newFixture(t)
	name := f.named(checkpoint.ObjectPrefix, 2)
	f.store.Hook = func(op memstore.Op) (out memstore.Outcome) {
		if op.Name == name {
			return memstore.Unreachable()
		}
		return out
	}
	v, err := inspect.Verify(t.Context(), f.store, 0, nil)
	wantFault(t, "unreachable", v, err, name, inspect.Unreachable)
}

func TestVerifySeesDamageOfTheLog(t *testing.T) {
	f := newFixture(t)
	f.flip("log/00000000000000000002", 40)
	v, err := inspect.Verify(t.Context(), f.store, 0, nil)
	wantFault(t, "log", v, err, "log/00000000000000000002", inspect.Damaged)
}

func TestVerifyOfOneLooksAtNothingElse(t *testing.T) {
	f := newFixture(t)
	f.flip(f.named(checkpoint.ObjectPrefix, 1), 100)
	if v, err := inspect.Verify(t.Context(), f.store, 2, nil); err != nil || v.Faults > 0 || len(v.Objects) != 3 {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := inspect.Verify(t.Context(), f.store, 3, nil); err == nil {
		t.Error("a checkpoint that failed was verified")
	}
}
