package statestore

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// discard is a store that keeps nothing.
type discard struct{ storage.Store }

func (discard) Create(context.Context, string, []byte) error { return nil }
func (discard) Write(context.Context, string) (storage.Writer, error) {
	return discardWriter{io.Discard}, nil
}
func (discard) String() string { return "discard" }

type discardWriter struct{ io.Writer }

func (discardWriter) Commit() error { return nil }
func (discardWriter) Abort()        {}

func discardPacker(ctx context.Context) *statefile.Packer {
	n := 0
	return statefile.NewPacker(ctx, discard{}, statefile.Options{
		Name: func() string { n++; return fmt.Sprint(n) },
		ID:   func() [16]byte { return [16]byte{byte(n)} },
	})
}

func countStore[K comparable](tb testing.TB) (*Store, *Keyer[K], *Table) {
	s := New(Config{Range: checkpoint.HashRange{Hi: 1<<64 - 1}, Seed: 7, Key: must(KeyOf[K]())})
	t := must(s.Declare(Decl{Name: "n", Kind: checkpoint.ValueState, Value: must(ValueOf[int64](nil))}))
	return s, must(KeyerOf[K](s)), t
}

// countOne is what an operator does for a record.
func countOne[K comparable](kr *Keyer[K], t *Table, k K) {
	kr.Set(k, kr.Hash(k))
	n, _ := Get[int64](t)
	Set(t, n+1)
}

// snapshots takes snapshots in the way a subtask does, every so often.
type snapshots struct {
	s     *Store
	every time.Duration
	last  time.Time
	id    uint64
	sn    *Snapshot
	done  chan error
	n     int
	pause time.Duration
}

func (ss *snapshots) poll(tb testing.TB) {
	if ss.every == 0 {
		return
	}
	if ss.sn != nil {
		select {
		case err := <-ss.done:
			if err != nil {
				tb.Fatal(err)
			}
			ss.sn.Release()
			ss.s.Confirm(ss.id)
			ss.sn = nil
			ss.n++
		default:
			return
		}
	}
	if now := time.Now(); now.Sub(ss.last) >= ss.every {
		ss.last = now
		ss.id++
		sn, err := ss.s.Snapshot(ss.id)
		if err != nil {
			tb.Fatal(err)
		}
		ss.pause = max(ss.pause, time.Since(now))
		ss.sn, ss.done = sn, make(chan error, 1)
		go func() {
			ctx := context.Background()
			_, err := sn.Write(ctx, discardPacker(ctx))
			ss.done <- err
		}()
	}
}

func benchCount[K comparable](b *testing.B, keys []K, every time.Duration) {
	s, kr, t := countStore[K](b)
	for _, k := range keys {
		countOne(kr, t, k)
	}
	ss := snapshots{s: s, every: every, last: time.Now()}
	order := randomOrder(len(keys))
	b.ReportAllocs()
	b.ResetTimer()
	var hashes [64]uint64
	for i := 0; i < b.N; i += len(hashes) {
		if i%1024 == 0 {
			ss.poll(b)
		}
		at := order[i&(len(order)-1):][:len(hashes)]
		for j, o := range at {
			hashes[j] = kr.Hash(keys[o])
		}
		s.Prefetch(hashes[:])
		for j, o := range at {
			kr.Set(keys[o], hashes[j])
			n, _ := Get[int64](t)
			Set(t, n+1)
		}
	}
	b.StopTimer()
	if ss.sn != nil {
		<-ss.done
	}
	if every > 0 {
		b.ReportMetric(float64(ss.n)/b.Elapsed().Seconds(), "snapshots/s")
		b.ReportMetric(float64(ss.pause.Microseconds()), "max-pause-us")
		b.ReportMetric(float64(s.Memory().Total())/(1<<20), "MB")
	}
}

func benchMap[K comparable](b *testing.B, keys []K) {
	m := map[K]int64{}
	for _, k := range keys {
		m[k]++
	}
	order := randomOrder(len(keys))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		m[keys[order[i&(len(order)-1)]]]++
	}
}

func randomOrder(n int) []uint32 {
	r := rand.New(rand.NewPCG(1, 2))
	order := make([]uint32, 1<<20)
	for i := range order {
		order[i] = uint32(r.IntN(n))
	}
	return order
}

func numbers(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i) * 0x9e3779b97f4a7c15
	}
	return keys
}

func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("cust-%07d", i)
	}
	return keys
}

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{1000, 1 << 20} {
		b.Run(fmt.Sprintf("uint64/%d/map", n), func(b *testing.B) { benchMap(b, numbers(n)) })
		b.Run(fmt.Sprintf("uint64/%d/table", n), func(b *testing.B) { benchCount(b, numbers(n), 0) })
		b.Run(fmt.Sprintf("uint64/%d/every100ms", n), func(b *testing.B) { benchCount(b, numbers(n), 100*time.Millisecond) })
		b.Run(fmt.Sprintf("string/%d/map", n), func(b *testing.B) { benchMap(b, names(n)) })
		b.Run(fmt.Sprintf("string/%d/table", n), func(b *testing.B) { benchCount(b, names(n), 0) })
		b.Run(fmt.Sprintf("string/%d/every100ms", n), func(b *testing.B) { benchCount(b, names(n), 100*time.Millisecond) })
	}
}

// BenchmarkPause is the sync phase alone.
func BenchmarkPause(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, kr, t := countStore[uint64](b)
			for i := range n {
				countOne(kr, t, uint64(i))
			}
			b.ResetTimer()
			for i := range b.N {
				sn, err := s.Snapshot(uint64(i))
				if err != nil {
					b.Fatal(err)
				}
				sn.Release()
			}
		})
	}
}

// BenchmarkWrite is the async phase alone.
func BenchmarkWrite(b *testing.B) {
	const n = 1_000_000
	s, kr, t := countStore[uint64](b)
	for i := range n {
		countOne(kr, t, uint64(i))
	}
	ctx := context.Background()
	for i := 0; b.Loop(); i++ {
		sn, err := s.Snapshot(uint64(i))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := sn.Write(ctx, discardPacker(ctx)); err != nil {
			b.Fatal(err)
		}
		sn.Release()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mentries/s")
}
