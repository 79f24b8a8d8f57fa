package statestore

import (
	"context"
	"fmt"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage/memstore"
)

// A reader that copies pages ahead reads the state of its snapshot, while the
// writer changes every key; and it does so only where pages had to be cloned.
func TestReaderAheadSeesItsSnapshot(t *testing.T) {
	const keys, rounds = 20_000, 6
	ctx := context.Background()
	store := memstore.New()
	s, kr, tb := countStore[uint64](t)
	all := func(n int) {
		for i := range n {
			countOne(kr, tb, uint64(i))
		}
	}
	all(keys)
	for id := uint64(1); id <= rounds; id++ {
		sn := snapshotOf(t, s, id)
		done := make(chan error, 1)
		var acks []checkpoint.StateAck
		begin := make(chan struct{})
		go func() {
			<-begin
			var err error
			acks, err = sn.Write(ctx, testPacker(ctx, store, fmt.Sprint("ckpt-", id)))
			done <- err
		}()
		if id > 1 && sn.tables[0].lead == 0 {
			t.Fatalf("snapshot %d: %d pages were cloned, and the reader is not ahead", id, tb.sp.clones)
		}
		all(keys / 2) // pages have overlays or are cloned by now
		close(begin)
		all(keys)
		all(keys - keys/2)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		sn.Release()
		ms, objects := manifest(s, acks)

		r, rk, rt := countStore[uint64](t)
		if err := r.Restore(ctx, store, ms, objects); err != nil {
			t.Fatal(err)
		}
		for i := range uint64(keys) {
			rk.Set(i, rk.Hash(i))
			if n, _ := Get[int64](rt); n != counted(i, id, keys) {
				t.Fatalf("snapshot %d: key %d is %d, not %d", id, i, n, counted(i, id, keys))
			}
		}
	}
	if s.Memory().Ahead == 0 {
		t.Error("the memory of the copies is not counted")
	}

	// Few changes from now on: the copies end, and so does their memory.
	for id := uint64(rounds + 1); id < rounds+100; id++ {
		sn := snapshotOf(t, s, id)
		if _, err := sn.Write(ctx, discardPacker(ctx)); err != nil {
			t.Fatal(err)
		}
		sn.Release()
	}
	if m := s.Memory(); m.Ahead != 0 {
		t.Errorf("%d bytes for copies that nobody needs", m.Ahead)
	}
}

// counted is how often key i was counted when snapshot id was taken.
func counted(i, id, keys uint64) int64 {
	n := int64(1)
	for range id - 1 {
		n++ // all
		if i < keys/2 {
			n++
		}
		if i < keys-keys/2 {
			n++
		}
	}
	return n
}

// Two snapshots that are written at once have memory of their own; what is left
// to the next one is counted once.
func TestAheadMemoryOfTwoSnapshotsIsCountedOnce(t *testing.T) {
	s, kr, tb := countStore[uint64](t)
	for i := range uint64(20_000) {
		countOne(kr, tb, i)
	}
	ctx := context.Background()
	for id := uint64(1); id < 20; id += 2 {
		a, b := snapshotOf(t, s, id), snapshotOf(t, s, id+1)
		for i := range uint64(20_000) {
			countOne(kr, tb, i)
		}
		for i := range a.tables {
			wa, wb := newTableWriter(ctx, a, &a.tables[i], discardPacker(ctx)), newTableWriter(ctx, b, &b.tables[i], discardPacker(ctx))
			for _, w := range []*tableWriter{wa, wb} {
				if _, err := w.write(); err != nil {
					t.Fatal(err)
				}
			}
		}
		a.Release()
		b.Release()
	}
	held := int64(0)
	if m := tb.sp.spare.Load(); m != nil {
		held = 8 * int64(len(*m))
	}
	if got := s.Memory().Ahead; got != held || held == 0 {
		t.Errorf("%d bytes are counted, %d are held", got, held)
	}
}
