package statefile

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// randomRun makes a configuration and entries that suit it.
func randomRun(rnd *rand.Rand, kind checkpoint.RunKind) (RunConfig, []Entry) {
	width := func() int { return []int{Variable, 1, 4, 8, 24}[rnd.Intn(5)] }
	optional := func() int { return []int{Absent, width()}[rnd.Intn(2)] }
	c := RunConfig{
		Kind: kind, Range: Everything,
		KeyWidth: width(), SubWidth: optional(), ValWidth: optional(), Times: rnd.Intn(2) == 0,
	}
	switch kind {
	case checkpoint.DeltaRun:
		c.Deletes = true
	case checkpoint.ListRun, checkpoint.TimerRun:
		c.Deletes = rnd.Intn(2) == 0
	}
	// Sizes from an empty run over inline ones to several blocks.
	n := []int{0, 1, 7, 8, 9, 100, 3000, 20000}[rnd.Intn(8)]
	field := func(width, max int) []byte {
		switch width {
		case Absent:
			return nil
		case Variable:
			width = rnd.Intn(max)
		}
		b := make([]byte, width)
		rnd.Read(b)
		return b
	}
	entries := make([]Entry, n)
	for i := range entries {
		e := Entry{Key: field(c.KeyWidth, 40), Sub: field(c.SubWidth, 20)}
		e.Deleted = c.Deletes && rnd.Intn(4) == 0
		if !e.Deleted {
			most := 60
			if rnd.Intn(2000) == 0 {
				most = 200 << 10 // larger than a block
			}
			e.Value = field(c.ValWidth, most)
			if c.Times {
				e.Time = rnd.Uint32()
			}
		}
		e.Hash = hashBytes(e.Key)
		entries[i] = e
	}
	slices.SortStableFunc(entries, func(a, b Entry) int {
		switch {
		case kind == checkpoint.TableRun || a.Hash == b.Hash:
			return 0
		case a.Hash < b.Hash:
			return -1
		}
		return 1
	})
	if kind == checkpoint.TableRun {
		for i := range entries {
			entries[i].Hash = uint64(i)
		}
	}
	return c, entries
}

var kinds = []checkpoint.RunKind{
	checkpoint.BaseRun, checkpoint.DeltaRun, checkpoint.ListRun, checkpoint.TimerRun, checkpoint.TableRun,
}

func readAll(ctx context.Context, r *Run, clip checkpoint.HashRange) ([]Entry, error) {
	var got []Entry
	hash := hashBytes
	err := r.All(ctx, clip, hash, func(e Entry) error {
		got = append(got, e)
		return nil
	})
	return got, err
}

func TestRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewSource(seed(t)))
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for range rounds {
		for _, kind := range kinds {
			c, entries := randomRun(rnd, kind)
			s := newMapStore()
			ref, objects := write(t, s, c, entries)
			r, err := OpenRun(t.Context(), s, ref, objects)
			if err != nil {
				t.Fatalf("%+v, %d entries: %v", c, len(entries), err)
			}
			got, err := readAll(t.Context(), r, Everything)
			if err != nil {
				t.Fatalf("%+v, %d entries: %v", c, len(entries), err)
			}
			if diff := diffEntries(entries, got); diff != "" {
				t.Fatalf("%+v, %d entries: %s", c, len(entries), diff)
			}
			if err := Verify(t.Context(), s, ref, objects); err != nil {
				t.Fatal(err)
			}
			checkRef(t, ref, entries)
			checkClips(t, rnd, r, entries)
		}
	}
}

func checkRef(t *testing.T, ref checkpoint.Ref, entries []Entry) {
	t.Helper()
	want := checkpoint.Ref{Kind: ref.Kind, Entries: int64(len(entries)), Clip: Everything}
	least := int64(math.MaxUint32)
	for _, e := range entries {
		want.Bytes += int64(len(e.Key) + len(e.Sub) + len(e.Value))
		if e.Deleted {
			want.Deletes++
		} else {
			least = min(least, int64(e.Time))
		}
	}
	if ref.Kind == checkpoint.TimerRun && len(entries) > 0 {
		want.MinTimer = least
	}
	ignored := []string{"Object", "Offset", "Length", "IndexOff", "IndexCRC", "Blocks", "Inline"}
	if diff := cmp.Diff(want, ref, cmpopts.IgnoreFields(checkpoint.Ref{}, ignored...)); diff != "" {
		t.Fatal(diff)
	}
}

// checkClips reads the run in pieces, as subtasks of another parallelism do.
func checkClips(t *testing.T, rnd *rand.Rand, r *Run, entries []Entry) {
	t.Helper()
	cuts := []uint64{0}
	for range rnd.Intn(4) {
		cut := rnd.Uint64()
		if len(entries) > 0 && rnd.Intn(2) == 0 {
			cut = entries[rnd.Intn(len(entries))].Hash
		}
		cuts = append(cuts, cut)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var all []Entry
	for i, lo := range cuts {
		clip := checkpoint.HashRange{Lo: lo, Hi: math.MaxUint64}
		if i+1 < len(cuts) {
			clip.Hi = cuts[i+1] - 1
		}
		got, err := readAll(t.Context(), r, clip)
		if err != nil {
			t.Fatalf("clip %v: %v", clip, err)
		}
		for _, e := range got {
			if !clip.Contains(e.Hash) {
				t.Fatalf("clip %v: got hash %x", clip, e.Hash)
			}
		}
		all = append(all, got...)
	}
	if diff := diffEntries(entries, all); diff != "" {
		t.Fatalf("clips %x: %s", cuts, diff)
	}
}

func TestReadBlockMatchesAll(t *testing.T) {
	s := newMapStore()
	ref, objects := write(t, s, fixed16, fixedEntries(10000, 0))
	r, err := OpenRun(t.Context(), s, ref, objects)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Blocks()) < 2 {
		t.Fatalf("%d blocks", len(r.Blocks()))
	}
	all, err := readAll(t.Context(), r, Everything)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, info := range r.Blocks() {
		b, err := r.ReadBlock(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		if b.Len() != info.Entries {
			t.Errorf("block %d: %d entries, index says %d", i, b.Len(), info.Entries)
		}
		for e := range b.Entries() {
			if !bytes.Equal(e.Key, all[n].Key) || !bytes.Equal(e.Value, all[n].Value) {
				t.Fatalf("entry %d differs", n)
			}
			n++
		}
	}
	if n != len(all) {
		t.Errorf("%d entries by blocks, %d by All", n, len(all))
	}
}

// fixedEntries makes n entries of 8 + 8 bytes; start tells sets of equal layout
// apart.
func fixedEntries(n int, start uint64) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		e := Entry{Key: le.AppendUint64(nil, uint64(i)), Value: le.AppendUint64(nil, start+uint64(i))}
		e.Hash = hashBytes(e.Key)
		entries[i] = e
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		if a.Hash < b.Hash {
			return -1
		}
		return 1
	})
	return entries
}

func TestClippedReferenceHidesTheRest(t *testing.T) {
	s := newMapStore()
	entries := fixedEntries(10000, 0)
	ref, objects := write(t, s, fixed16, entries)
	ref.Clip = checkpoint.HashRange{Lo: entries[1000].Hash, Hi: entries[8999].Hash}
	r, err := OpenRun(t.Context(), s, ref, objects)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t.Context(), r, Everything)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffEntries(entries[1000:9000], got); diff != "" {
		t.Fatal(diff)
	}
	err = r.All(t.Context(), Everything, nil, func(Entry) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "hash function is needed") {
		t.Errorf("without a hash function: %v", err)
	}
}

func TestAnotherHashSeedIsSeen(t *testing.T) {
	s := newMapStore()
	ref, objects := write(t, s, fixed16, fixedEntries(10000, 0))
	r, err := OpenRun(t.Context(), s, ref, objects)
	if err != nil {
		t.Fatal(err)
	}
	other := func(key []byte) uint64 { return hashBytes(key) ^ 1<<63 }
	if err := r.All(t.Context(), Everything, other, func(Entry) error { return nil }); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v", err)
	}
}

func TestWriterRefuses(t *testing.T) {
	k := make([]byte, 8)
	narrow := fixed16
	narrow.Range = checkpoint.HashRange{Lo: 10, Hi: 20}
	table := RunConfig{Kind: checkpoint.TableRun, SubWidth: Absent}
	tests := []struct {
		name string
		c    RunConfig
		add  func(w *RunWriter) error
		want string
	}{
		{"descending", fixed16, func(w *RunWriter) error {
			return errors.Join(w.Add(2, k, nil, k, 0), w.Add(1, k, nil, k, 0))
		}, "entries must ascend"},
		{"below the range", narrow, func(w *RunWriter) error { return w.Add(9, k, nil, k, 0) }, "outside"},
		{"above the range", narrow, func(w *RunWriter) error { return w.Add(21, k, nil, k, 0) }, "outside"},
		{"short key", fixed16, func(w *RunWriter) error { return w.Add(1, k[:7], nil, k, 0) }, "key of 7"},
		{"sub-key where none is", fixed16, func(w *RunWriter) error { return w.Add(1, k, k, k, 0) }, "sub-key of 8"},
		{"no value", fixed16, func(w *RunWriter) error { return w.Add(1, k, nil, nil, 0) }, "value of 0"},
		{"tombstone in a base", fixed16, func(w *RunWriter) error { return w.Delete(1, k, nil) }, "tombstone"},
		{"huge value", table, func(w *RunWriter) error { return w.Add(0, nil, nil, make([]byte, maxField+1), 0) }, "value of 67108865"},
		{"kind", RunConfig{Kind: 9}, func(w *RunWriter) error { return w.Add(0, k, nil, nil, 0) }, "no such kind"},
		{"no keys", RunConfig{Kind: checkpoint.BaseRun, KeyWidth: Absent}, func(w *RunWriter) error { return w.Add(0, k, nil, nil, 0) }, "width"},
		{"base with tombstones", RunConfig{Kind: checkpoint.BaseRun, Deletes: true}, func(w *RunWriter) error { return w.Add(0, k, nil, nil, 0) }, "no tombstones"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPacker(t.Context(), newMapStore(), named(Options{}))
			w := p.NewRun(tt.c)
			err := tt.add(w)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if _, err := w.Finish(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Finish: %v, want the first error", err)
			}
		})
	}
}

func TestLargestValueRoundTrips(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB")
	}
	s := newMapStore()
	c := RunConfig{Kind: checkpoint.BaseRun, Range: Everything, KeyWidth: 8, SubWidth: Absent, ValWidth: Variable}
	k := make([]byte, 8)
	big := Entry{Hash: hashBytes(k), Key: k, Value: bytes.Repeat([]byte{7}, maxField)}
	ref, objects := write(t, s, c, []Entry{big})
	r, err := OpenRun(t.Context(), s, ref, objects)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t.Context(), r, Everything)
	if err != nil || len(got) != 1 || !bytes.Equal(got[0].Value, big.Value) {
		t.Fatalf("%d entries, %v", len(got), err)
	}
}

func TestTimerSecondsIsNeverLate(t *testing.T) {
	tests := []struct {
		nanos int64
		want  uint32
	}{{-1, 0}, {0, 0}, {999_999_999, 0}, {1e9, 1}, {math.MaxUint32 * 1e9, math.MaxUint32}, {math.MaxInt64, math.MaxUint32}, {math.MinInt64, 0}}
	for _, tt := range tests {
		if got := TimerSeconds(tt.nanos); got != tt.want {
			t.Errorf("TimerSeconds(%d) = %d, want %d", tt.nanos, got, tt.want)
		}
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	p := NewPacker(t.Context(), &discard{}, named(Options{}))
	w := p.NewRun(fixed16)
	defer w.Abort()
	var key, val [8]byte
	h := uint64(0)
	const block = 8192 // more than a block, so that flushing is in it
	per := testing.AllocsPerRun(20, func() {
		for range block {
			h++
			if err := w.Add(h, key[:], nil, val[:], 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	if per > 8 {
		t.Errorf("%v allocations for %d entries", per, block)
	}
}
