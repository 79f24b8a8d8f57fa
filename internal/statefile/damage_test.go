package statefile

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// smallRun is a run of a few kilobytes, in an object, of the kind.
func smallRun(t *testing.T, kind checkpoint.RunKind) (*mapStore, checkpoint.Ref, []checkpoint.Object, []Entry) {
	t.Helper()
	c := RunConfig{Kind: kind, Range: Everything, KeyWidth: 8, SubWidth: Variable, ValWidth: Variable, Times: true}
	c.Deletes = kind != checkpoint.BaseRun && kind != checkpoint.TableRun
	entries := fixedEntries(150, 0)
	for i := range entries {
		e := &entries[i]
		e.Time = uint32(i + 1)
		e.Sub = []byte(fmt.Sprint(i))
		if kind == checkpoint.TableRun {
			e.Hash = uint64(i)
		}
		if c.Deletes && i%5 == 0 {
			e.Deleted, e.Value, e.Time = true, nil, 0
		}
	}
	s := newMapStore()
	ref, objects := write(t, s, c, entries)
	if ref.Object != 0 {
		t.Fatalf("run of %d bytes went inline", ref.Length)
	}
	return s, ref, objects, entries
}

// wantDamage checks that err is damage that names object and an offset in it.
func wantDamage(t *testing.T, what string, err error, object string, size int64) {
	t.Helper()
	var c *CorruptError
	switch {
	case err == nil:
		t.Fatalf("%s: not seen", what)
	case errors.Is(err, ErrUnsupported):
		t.Fatalf("%s: taken for another version: %v", what, err)
	case !errors.As(err, &c) || !errors.Is(err, ErrCorrupt):
		t.Fatalf("%s: not damage: %v", what, err)
	case c.Object != object || c.Offset < 0 || c.Offset > size:
		t.Fatalf("%s: named %s at %d", what, c.Object, c.Offset)
	case c.What == "" || c.Expected == c.Found || !strings.Contains(err.Error(), object):
		t.Fatalf("%s: says %v", what, err)
	}
}

func TestEachFlippedByteIsSeen(t *testing.T) {
	for _, kind := range kinds {
		t.Run(fmt.Sprint("kind ", kind), func(t *testing.T) {
			s, ref, objects, entries := smallRun(t, kind)
			name := objects[0].Name
			b := s.objects[name]
			for i := range b {
				for _, bit := range []byte{1, 0x80, 0xff} {
					b[i] ^= bit
					wantDamage(t, fmt.Sprintf("byte %d ^ %#x", i, bit), Verify(t.Context(), s, ref, objects), name, objects[0].Size)
					checkReader(t, s, ref, objects, entries)
					b[i] ^= bit
				}
			}
			if err := Verify(t.Context(), s, ref, objects); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// checkReader checks that a read gives the right entries or damage.
func checkReader(t *testing.T, s storage.Store, ref checkpoint.Ref, objects []checkpoint.Object, entries []Entry) {
	t.Helper()
	r, err := OpenRun(t.Context(), s, ref, objects)
	var got []Entry
	if err == nil {
		err = r.All(t.Context(), Everything, nil, func(e Entry) error {
			got = append(got, e)
			return nil
		})
	}
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		return
	}
	for i := range got {
		got[i].Hash = entries[i].Hash
	}
	if diff := diffEntries(entries, got); diff != "" {
		t.Fatal(diff)
	}
}

func TestFlippedByteOfALargeRunIsSeen(t *testing.T) {
	rnd := rand.New(rand.NewSource(seed(t)))
	s := newMapStore()
	ref, objects := write(t, s, fixed16, fixedEntries(20000, 0))
	b := s.objects[objects[0].Name]
	for range 300 {
		i, bit := rnd.Intn(len(b)), byte(1)<<rnd.Intn(8)
		b[i] ^= bit
		wantDamage(t, fmt.Sprintf("byte %d ^ %#x", i, bit), Verify(t.Context(), s, ref, objects), objects[0].Name, objects[0].Size)
		b[i] ^= bit
	}
}

func TestEachTruncationIsSeen(t *testing.T) {
	for _, kind := range kinds {
		s, ref, objects, entries := smallRun(t, kind)
		name := objects[0].Name
		b := s.objects[name]
		for n := range b {
			s.objects[name] = b[:n]
			err := Verify(t.Context(), s, ref, objects)
			wantDamage(t, fmt.Sprintf("cut to %d", n), err, name, objects[0].Size)
			if want := fmt.Sprintf("expected %d bytes, found %d bytes", len(b), n); !strings.Contains(err.Error(), want) {
				t.Fatalf("%v does not say %q", err, want)
			}
			_, err = OpenRun(t.Context(), s, ref, objects)
			wantDamage(t, fmt.Sprintf("cut to %d", n), err, name, objects[0].Size)
		}
		s.objects[name] = append(slices.Clone(b), 0)
		wantDamage(t, "one byte more", Verify(t.Context(), s, ref, objects), name, objects[0].Size)
		checkReader(t, s, ref, objects, entries)
	}
}

func TestExchangedRegionsAreSeen(t *testing.T) {
	s := newMapStore()
	p := NewPacker(t.Context(), s, named(Options{}))
	// Runs 0 and 1 lie in one object, run 2 in another; all of one layout, and
	// run 2 even with the content of run 0.
	var runs []*Pending
	for _, start := range []uint64{0, 5, 0} {
		handle := p
		if len(runs) == 2 {
			handle = p.Subtask()
		}
		runs = append(runs, add(t, handle, fixed16, fixedEntries(20000, start)))
	}
	refs, objects, err := Collect(t.Context(), runs...)
	if err != nil {
		t.Fatal(err)
	}
	if refs[0].Object != refs[1].Object || refs[0].Object == refs[2].Object {
		t.Fatalf("runs lie in objects %d, %d, %d", refs[0].Object, refs[1].Object, refs[2].Object)
	}
	type region struct {
		what   string
		run    int
		object string
		off    int64
		n      int64
	}
	var regions []region
	for i, ref := range refs {
		r, err := OpenRun(t.Context(), s, ref, objects)
		if err != nil {
			t.Fatal(err)
		}
		name := objects[ref.Object].Name
		for b, info := range r.Blocks() {
			regions = append(regions, region{fmt.Sprintf("block %d of run %d", b, i), i, name, ref.Offset + info.Offset, info.size()})
		}
		regions = append(regions,
			region{fmt.Sprintf("index of run %d", i), i, name, ref.Offset + ref.IndexOff, int64(ref.Blocks * indexEntrySize)},
			region{fmt.Sprintf("run %d", i), i, name, ref.Offset, ref.Length})
	}
	exchanged := 0
	for i, a := range regions {
		for _, b := range regions[:i] {
			// Regions of one size that do not overlap.
			if a.n != b.n || a.object == b.object && a.off < b.off+b.n && b.off < a.off+a.n {
				continue
			}
			x, y := s.objects[a.object][a.off:a.off+a.n], s.objects[b.object][b.off:b.off+b.n]
			if string(x) == string(y) {
				t.Fatalf("%s equals %s", a.what, b.what)
			}
			swap(x, y)
			exchanged++
			for _, run := range []int{a.run, b.run} {
				ref := refs[run]
				o := objects[ref.Object]
				wantDamage(t, a.what+" <-> "+b.what, Verify(t.Context(), s, ref, objects), o.Name, o.Size)
			}
			swap(x, y)
		}
	}
	if exchanged < 30 {
		t.Errorf("only %d exchanges", exchanged)
	}
}

func swap(x, y []byte) {
	for i := range x {
		x[i], y[i] = y[i], x[i]
	}
}

func TestExchangedObjectsAreSeen(t *testing.T) {
	s := newMapStore()
	p := NewPacker(t.Context(), s, named(Options{}))
	entries := fixedEntries(20000, 0)
	refs, objects, err := Collect(t.Context(), add(t, p, fixed16, entries), add(t, p.Subtask(), fixed16, entries))
	if err != nil {
		t.Fatal(err)
	}
	a, b := objects[0].Name, objects[1].Name
	s.objects[a], s.objects[b] = s.objects[b], s.objects[a]
	for i, ref := range refs {
		wantDamage(t, "objects exchanged", Verify(t.Context(), s, ref, objects), objects[i].Name, objects[i].Size)
		r, err := OpenRun(t.Context(), s, ref, objects)
		if err == nil {
			_, err = r.ReadBlock(t.Context(), 0)
		}
		wantDamage(t, "objects exchanged, header not read", err, objects[i].Name, objects[i].Size)
	}
}

func TestDamagedInlineRunIsSeen(t *testing.T) {
	s := newMapStore()
	ref, _ := write(t, s, fixed16, fixedEntries(20, 0))
	if ref.Object != -1 || s.visible() != 0 {
		t.Fatalf("not inline: %+v", ref)
	}
	for i := range ref.Inline {
		ref.Inline[i] ^= 4
		wantDamage(t, fmt.Sprintf("byte %d", i), Verify(t.Context(), s, ref, nil), "inline run", ref.Length)
		ref.Inline[i] ^= 4
	}
	whole := ref.Inline
	for n := range whole {
		ref.Inline = whole[:n]
		wantDamage(t, fmt.Sprintf("cut to %d", n), Verify(t.Context(), s, ref, nil), "inline run", ref.Length)
	}
}

func TestCountsOfTheReferenceAreChecked(t *testing.T) {
	tests := []struct {
		name string
		f    func(*checkpoint.Ref)
	}{
		{"one entry fewer", func(r *checkpoint.Ref) { r.Entries-- }},
		{"one entry more", func(r *checkpoint.Ref) { r.Entries++ }},
		{"one tombstone fewer", func(r *checkpoint.Ref) { r.Deletes-- }},
		{"one block fewer", func(r *checkpoint.Ref) { r.Blocks-- }},
		{"one block more", func(r *checkpoint.Ref) { r.Blocks++ }},
		{"negative blocks", func(r *checkpoint.Ref) { r.Blocks = -1 }},
		{"another kind", func(r *checkpoint.Ref) { r.Kind = checkpoint.ListRun }},
		{"another place", func(r *checkpoint.Ref) { r.Offset++ }},
		{"negative place", func(r *checkpoint.Ref) { r.Offset = -1 }},
		{"longer", func(r *checkpoint.Ref) { r.Length++ }},
		{"enormous", func(r *checkpoint.Ref) { r.Length = 1<<63 - 1; r.IndexOff = r.Length - trailerSize - indexEntrySize }},
		{"another index", func(r *checkpoint.Ref) { r.IndexOff--; r.Length-- }},
		{"another index checksum", func(r *checkpoint.Ref) { r.IndexCRC++ }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, ref, objects, _ := smallRun(t, checkpoint.DeltaRun)
			tt.f(&ref)
			err := Verify(t.Context(), s, ref, objects)
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("no such object", func(t *testing.T) {
		s, ref, _, _ := smallRun(t, checkpoint.BaseRun)
		if _, err := OpenRun(t.Context(), s, ref, nil); !errors.Is(err, ErrCorrupt) {
			t.Errorf("got %v", err)
		}
	})
}

// A block that says less than the reference, with every checksum right: what
// the count in All is for.
func TestForgedTombstoneCountIsSeen(t *testing.T) {
	s := newMapStore()
	p := NewPacker(t.Context(), s, named(Options{}))
	w := p.NewRun(RunConfig{Kind: checkpoint.DeltaRun, Range: Everything, KeyWidth: 8, SubWidth: Absent, ValWidth: 8})
	for _, e := range fixedEntries(10, 0) {
		if err := w.Add(e.Hash, e.Key, nil, e.Value, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.ref.Deletes = 1
	r, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	refs, objects, err := Collect(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(t.Context(), s, refs[0], objects); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "tombstones") {
		t.Errorf("got %v", err)
	}
}

// A block that is not read, whatever the reason, must not go unnoticed.
func TestSkippedBlockIsSeen(t *testing.T) {
	s := newMapStore()
	ref, objects := write(t, s, fixed16, fixedEntries(20000, 0))
	r, err := OpenRun(t.Context(), s, ref, objects)
	if err != nil {
		t.Fatal(err)
	}
	r.blocks = r.blocks[:1]
	err = r.All(t.Context(), Everything, nil, func(Entry) error { return nil })
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "entries of the run") {
		t.Errorf("got %v", err)
	}
}

func TestFailingStoreIsNoDamage(t *testing.T) {
	s, ref, objects, _ := smallRun(t, checkpoint.BaseRun)
	s.cut = 1 // reads come short, the object is whole
	if err := Verify(t.Context(), s, ref, objects); err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("short read of a whole object: %v", err)
	}
	s.cut = 0
	delete(s.objects, objects[0].Name)
	for what, err := range map[string]error{
		"Verify":       Verify(t.Context(), s, ref, objects),
		"CheckObjects": CheckObjects(t.Context(), s, objects),
		"OpenRun":      func() error { _, err := OpenRun(t.Context(), s, ref, objects); return err }(),
	} {
		if !errors.Is(err, storage.ErrNotFound) || errors.Is(err, ErrCorrupt) {
			t.Errorf("%s of a missing object: %v", what, err)
		}
	}
}

// Blocks of a later version must be told from damage.
func TestUnknownCodecIsNamed(t *testing.T) {
	tests := []struct {
		byte int
		to   byte
		want string
	}{
		{4, 2, "block version 2"}, {5, codecZstd, "zstd"}, {5, codecS2, "s2"}, {5, 9, "block codec 9"}, {7, 0x40, "block flags"},
	}
	for _, tt := range tests {
		s, ref, objects, _ := smallRun(t, checkpoint.BaseRun)
		r, err := OpenRun(t.Context(), s, ref, objects)
		if err != nil {
			t.Fatal(err)
		}
		b := s.objects[objects[0].Name][ref.Offset:]
		b[tt.byte] = tt.to
		b = b[:r.blocks[0].size()]
		r.blocks[0].CRC = blockCRC(objects[0].ID, b)
		le.PutUint32(b[44:], r.blocks[0].CRC)
		_, err = r.ReadBlock(context.Background(), 0)
		if !errors.Is(err, ErrUnsupported) || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %q", err, tt.want)
		}
	}
}
