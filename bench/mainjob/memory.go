package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/internal/statestore"
	"github.com/staunchdev/staunch/storage/dir"
)

// measureMemory reports what a snapshot of 1 M keys takes beyond the state. The
// store is driven directly: a job has batches and an input besides, which have
// nothing to do with the snapshot. It is held before its first page was read,
// which is the worst moment.
func measureMemory(ctx context.Context, c config, r *report) error {
	const keys, hold = 1_000_000, 5 * time.Second
	for _, b := range []struct {
		name    string
		changes int // distinct keys that are written
		hold    time.Duration
		bar     float64
	}{
		{"1 % random keys changing, held 5 s: <= 15 %", keys / 100, hold, 0.15},
		{"all keys changing, held 5 s: <= 115 %", keys, hold, 1.15},
		{"all keys changing, nothing held: <= 50 %", keys, 0, 0.5},
	} {
		var store, heap []float64
		for range c.rounds {
			s, h, err := extra(ctx, c, keys, b.changes, b.hold)
			if err != nil {
				return err
			}
			store, heap = append(store, s), append(heap, h)
		}
		v := median(store)
		value := fmt.Sprintf("%.1f %% of the state by its own count", 100*v)
		if b.hold > 0 {
			v = max(v, median(heap))
			value += fmt.Sprintf(", %.1f %% by the collector's", 100*median(heap))
		}
		r.bar("extra memory, 1 M keys, "+b.name, value, v <= b.bar)
	}
	return nil
}

// extra is the most memory beyond the state that a snapshot took, as parts of
// the state: by the store's own count, and what the collector finds alive
// before the hold ends.
func extra(ctx context.Context, c config, keys, changes int, hold time.Duration) (store, heap float64, err error) {
	kt, err := statestore.KeyOf[uint64]()
	if err != nil {
		return 0, 0, err
	}
	vt, err := statestore.ValueOf[int64](nil)
	if err != nil {
		return 0, 0, err
	}
	s := statestore.New(statestore.Config{Range: checkpoint.HashRange{Hi: ^uint64(0)}, Seed: 7, Key: kt})
	t, err := s.Declare(statestore.Decl{Name: "n", Kind: checkpoint.ValueState, Value: vt})
	if err != nil {
		return 0, 0, err
	}
	keyer, err := statestore.KeyerOf[uint64](s)
	if err != nil {
		return 0, 0, err
	}
	all, random := rand.New(rand.NewPCG(3, 3)).Perm(keys), rand.New(rand.NewPCG(5, 5))
	count := func(k int) {
		key := uint64(k) * 0x9e3779b97f4a7c15
		keyer.Set(key, keyer.Hash(key))
		n, _ := statestore.Get[int64](t)
		statestore.Set(t, n+1)
	}
	empty := live()
	for _, k := range all {
		count(k)
	}
	s.EndKey()

	where, err := os.MkdirTemp(c.dir, "memory-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(where)
	objects, err := dir.Open(where)
	if err != nil {
		return 0, 0, err
	}
	defer objects.Close()

	base, full := s.Memory().Total(), live()
	sn, err := s.Snapshot(1)
	if err != nil {
		return 0, 0, err
	}
	written := make(chan error, 1)
	release := make(chan struct{})
	go func() {
		<-release
		n := 0
		_, err := sn.Write(ctx, statefile.NewPacker(ctx, objects, statefile.Options{
			Name: func() string { n++; return "o" + strconv.Itoa(n) },
			ID:   func() [16]byte { return [16]byte{byte(n)} },
		}))
		sn.Release()
		written <- err
	}()
	if hold == 0 {
		close(release)
	}
	most := base
	began, released := time.Now(), hold == 0
	for {
		for range 1000 {
			count(all[random.IntN(changes)])
		}
		s.EndKey()
		most = max(most, s.Memory().Total())
		if !released && time.Since(began) >= hold {
			released = true
			heap = float64(live()-full) / float64(full-empty)
			close(release)
		}
		select {
		case err := <-written:
			return float64(most-base) / float64(base), heap, err
		default:
		}
	}
}

// live is what collections leave: the second one takes what pools had held over
// the first.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
