package statestore

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

var everything = checkpoint.HashRange{Hi: 1<<64 - 1}

// write writes a snapshot, releases it, and makes a manifest of it.
func write(t *testing.T, s *Store, sn *Snapshot, store storage.Store, name string) ([]checkpoint.StateManifest, []checkpoint.Object) {
	t.Helper()
	ctx := context.Background()
	acks, err := sn.Write(ctx, testPacker(ctx, store, name))
	if err != nil {
		t.Fatal(err)
	}
	sn.Release()
	return manifest(s, acks)
}

func snapshotOf(t *testing.T, s *Store, id uint64) *Snapshot {
	t.Helper()
	sn, err := s.Snapshot(id)
	if err != nil {
		t.Fatal(err)
	}
	return sn
}

func TestGetAndSetAllocateNothing(t *testing.T) {
	s, kr, tb := countStore[uint64](t)
	zeroAllocs(t, "uint64 -> int64", s, kr, tb, numbers(1000))
	ss, skr, stb := countStore[string](t)
	zeroAllocs(t, "string -> int64", ss, skr, stb, names(1000))

	r := New(Config{Range: everything, Key: must(KeyOf[string]())})
	at := must(r.Declare(Decl{Name: "a", Kind: checkpoint.ValueState, Value: must(ValueOf[account](nil))}))
	rk := must(KeyerOf[string](r))
	keys := names(1000)
	for _, k := range keys {
		rk.Set(k, rk.Hash(k))
		Set(at, account{Name: k, Tag: "x"})
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		k := keys[i%len(keys)]
		rk.Set(k, rk.Hash(k))
		a, _ := Get[account](at)
		a.Cents++
		Set(at, a)
		r.EndKey()
		i++
	}); n != 0 {
		t.Errorf("string -> struct with strings: %v allocations", n)
	}
}

func zeroAllocs[K comparable](t *testing.T, name string, s *Store, kr *Keyer[K], tb *Table, keys []K) {
	for _, k := range keys {
		countOne(kr, tb, k)
	}
	i := 0
	if n := testing.AllocsPerRun(1000, func() {
		countOne(kr, tb, keys[i%len(keys)])
		s.EndKey()
		i++
	}); n != 0 {
		t.Errorf("%s: %v allocations", name, n)
	}
}

// TestSyncPhaseDoesNotGrow compares what a sync phase allocates and copies with
// few and with many entries.
func TestSyncPhaseDoesNotGrow(t *testing.T) {
	var bytes [2]uint64
	for i, n := range []int{100, 300_000} {
		s, kr, tb := countStore[uint64](t)
		for k := range uint64(n) {
			countOne(kr, tb, k)
		}
		snapshotOf(t, s, 0).Release()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		snapshotOf(t, s, 1)
		runtime.ReadMemStats(&after)
		bytes[i] = after.TotalAlloc - before.TotalAlloc
		for i := range tb.dirs {
			tb.dirs[i].each(func(p *page) bool {
				if p.own > 2 || p.marks[0].Load()|p.marks[1].Load() != 0 {
					t.Fatal("the sync phase touched a page")
				}
				return true
			})
		}
	}
	if bytes[1] > bytes[0]+512 {
		t.Errorf("the sync phase of 100 entries allocates %d bytes, that of 300 000 %d", bytes[0], bytes[1])
	}
}

// What a snapshot has retired is not freed by the next sync phase, which would
// grow with the state, but by the slices behind it.
func TestSyncPhaseFreesNoPages(t *testing.T) {
	const keys = 50_000
	s, kr, tb := countStore[uint64](t)
	count := func() {
		for k := range uint64(keys) {
			countOne(kr, tb, k)
		}
	}
	count()
	sn := snapshotOf(t, s, 0)
	count()
	sn.Release()
	n := len(s.retired.items)
	if n < 100 {
		t.Fatalf("%d things were retired", n)
	}
	sn = snapshotOf(t, s, 1)
	if len(s.retired.items) != n || s.retired.head != 0 {
		t.Errorf("the sync phase freed pages: of %d, %d are left", n, len(s.retired.items)-s.retired.head)
	}
	for range n/reapSlice + 1 {
		s.EndKey()
	}
	if len(s.retired.items) != 0 || s.Memory().Retired != 0 {
		t.Errorf("%d of %d pages are left after as many slices as it takes", len(s.retired.items)-s.retired.head, n)
	}
	sn.Release()
}

func TestMemoryWhileASnapshotIsHeld(t *testing.T) {
	const keys = 200_000
	s, kr, tb := countStore[uint64](t)
	for k := range uint64(keys) {
		countOne(kr, tb, k)
	}
	base := s.Memory()
	sn := snapshotOf(t, s, 1)
	for round := range 20 {
		for i := range uint64(keys / 100) { // the same 1 % of the keys again and again
			countOne(kr, tb, i*100%keys+uint64(round%1))
		}
	}
	few := s.Memory()
	if extra := few.Total() - base.Total(); extra > base.Total()*15/100 {
		t.Errorf("1 %% of the keys changed: %d bytes more than %d; %+v", extra, base.Total(), few)
	}
	for k := range uint64(keys) {
		countOne(kr, tb, k)
	}
	all := s.Memory()
	if extra := all.Total() - base.Total(); extra > base.Total()*115/100 {
		t.Errorf("all keys changed: %d bytes more than %d; %+v", extra, base.Total(), all)
	}
	sn.Abort()
	sn.Release()
	for k := range uint64(keys) {
		countOne(kr, tb, k)
	}
	s.reap()
	if m := s.Memory(); m.Retired != 0 || m.Overlays != 0 {
		t.Errorf("after the snapshot ended: %+v", m)
	}
}

func TestFailuresNameStateAndKey(t *testing.T) {
	st := newStates[string](1, everything, 2)
	for name, tt := range map[string]struct {
		f    func()
		want string
	}{
		"outside a call": {func() {
			st.s.EndKey()
			Get[int64](st.count)
		}, `state "count" was used outside a call`},
		"huge string": {func() {
			st.take("k-1")
			Set(st.acc, account{Name: strings.Repeat("x", MaxValue+1)})
		}, "67108865 bytes"},
		"huge encoding": {func() {
			st.take("k-1")
			Set(st.words, words{strings.Repeat("x", MaxValue+1)})
		}, `state "words", key "k-1": a value of 67108865 bytes; the limit is 67108864`},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				r := recover()
				if f, ok := r.(Failure); !ok || !strings.Contains(f.Error(), tt.want) {
					t.Errorf("%v, want %q", r, tt.want)
				}
			}()
			tt.f()
		})
	}
}
