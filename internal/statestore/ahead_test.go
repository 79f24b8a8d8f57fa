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
