package statestore

import (
	"context"
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage/memstore"
)

func TestTTL(t *testing.T) {
	now := int64(1_000_000 * time.Second)
	config := Config{Range: everything, Key: must(KeyOf[uint64]()), Now: func() int64 { return now }}
	declare := func(s *Store, ttl time.Duration) (v, l, m *Table) {
		v = must(s.Declare(Decl{Name: "v", Kind: checkpoint.ValueState, Value: must(ValueOf[int64](nil)), TTL: ttl}))
		l = must(s.Declare(Decl{Name: "l", Kind: checkpoint.ListState, Value: must(ValueOf[string](nil)), TTL: ttl}))
		m = must(s.Declare(Decl{Name: "m", Kind: checkpoint.MapState, Value: must(ValueOf[account](nil)), Sub: must(KeyOf[uint64]()), TTL: ttl}))
		return v, l, m
	}
	s := New(config)
	v, l, m := declare(s, time.Minute)
	kr, sub := must(KeyerOf[uint64](s)), must(SubOf[uint64](0))
	const keys = 300
	fill := func(from, to uint64) {
		for k := from; k < to; k++ {
			kr.Set(k, kr.Hash(k))
			Set(v, int64(k))
			ListAppend(l, "a", "b")
			for j := range uint64(12) {
				MapSet(m, sub, j, account{Name: "entry of a map", Cents: int64(j)})
			}
		}
	}
	count := func(s *Store, kr *Keyer[uint64], v, l, m *Table) (n [3]int) {
		for k := range uint64(keys) {
			kr.Set(k, kr.Hash(k))
			if v.Has() {
				n[0]++
			}
			n[1] += ListLen(l)
			n[2] += MapLen(m)
			for range MapAll[uint64, account](m, sub) {
				n[2]++
			}
		}
		return n
	}
	fill(0, keys)
	now += int64(50 * time.Second)
	fill(0, keys/3)
	if got, want := count(s, kr, v, l, m), [3]int{keys, 2 * (keys + keys/3), 24 * keys}; got != want {
		t.Fatalf("before the TTL: %v, want %v", got, want)
	}
	now += int64(11 * time.Second)
	alive := [3]int{keys / 3, 4 * (keys / 3), 24 * (keys / 3)}
	if got := count(s, kr, v, l, m); got != alive {
		t.Fatalf("behind the TTL: %v, want %v", got, alive)
	}

	store := memstore.New()
	manifests, objects := write(t, s, snapshotOf(t, s, 1), store, "c")
	for i, want := range []int64{keys / 3, keys / 3, 12 * (keys / 3)} {
		if manifests[i].Entries != want {
			t.Errorf("state %s: %d entries in the snapshot, want %d", manifests[i].Name, manifests[i].Entries, want)
		}
	}
	// A longer TTL revives nothing, not even what a floor has to keep out.
	r := New(config)
	rv, rl, rm := declare(r, time.Hour)
	if err := r.Restore(context.Background(), store, manifests, objects); err != nil {
		t.Fatal(err)
	}
	if got := count(r, must(KeyerOf[uint64](r)), rv, rl, rm); got != alive {
		t.Errorf("restored: %v, want %v", got, alive)
	}
	manifests[0].TTLFloor = now / int64(time.Second)
	r = New(config)
	rv, rl, rm = declare(r, time.Hour)
	if err := r.Restore(context.Background(), store, manifests, objects); err != nil {
		t.Fatal(err)
	}
	if got := count(r, must(KeyerOf[uint64](r)), rv, rl, rm); got[0] != 0 {
		t.Errorf("%d values older than the floor", got[0])
	}

	s.Sweep(1000)
	if got, want := [3]int{v.Len(), l.Len(), m.Len()}, [3]int{keys / 3, keys / 3, keys / 3}; got != want {
		t.Errorf("after a sweep: %v, want %v", got, want)
	}
	if n := m.maps.sub.entries; n != 12*(keys/3) {
		t.Errorf("after a sweep: %d entries in maps", n)
	}
	now += int64(time.Hour)
	s.Sweep(1000)
	s.Sweep(1000)
	if got := [3]int{v.Len(), l.Len(), m.Len()}; got != [3]int{} || m.maps.sub.entries != 0 {
		t.Errorf("after all is dead: %v, %d", got, m.maps.sub.entries)
	}
}
