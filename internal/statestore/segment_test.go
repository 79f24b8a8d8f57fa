package statestore

import (
	"context"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/storage/memstore"
)

// TestSegmentsTileTheRange checks that segments are disjoint, ascending and
// cover the range.
func TestSegmentsTileTheRange(t *testing.T) {
	for _, p := range []int{1, 2, 3, 7, 128} {
		for i, r := range keyhash.Split(p) {
			sn := &Snapshot{rng: r, mul: keyhash.Mul(r)}
			for bitCount := range uint8(9) {
				next := r.Lo
				n := 0
				for {
					seg := sn.segment(next, bitCount)
					if seg.Lo != next || seg.Hi < seg.Lo || sn.segment(seg.Hi, bitCount) != seg {
						t.Fatalf("range %d of %d, %d bits: segment %x of hash %x", i, p, bitCount, seg, next)
					}
					n++
					if seg.Hi == r.Hi {
						break
					}
					next = seg.Hi + 1
				}
				// Mul is rounded down, so the last ones may be missing.
				if n > 1<<bitCount || 2*n <= 1<<bitCount-1 {
					t.Fatalf("range %d of %d, %d bits: %d segments", i, p, bitCount, n)
				}
			}
		}
	}
}

func TestLargeStateIsCutIntoSegments(t *testing.T) {
	s := New(Config{Range: keyhash.Split(3)[2], Key: must(KeyOf[uint64]())})
	tb := must(s.Declare(Decl{Name: "v", Kind: checkpoint.ListState, Value: must(ValueOf[string](nil))}))
	kr := must(KeyerOf[uint64](s))
	long := strings.Repeat("long ", 20_000)
	owned := 0
	for k := range uint64(1200) {
		if h := kr.Hash(k); s.cfg.Range.Contains(h) {
			kr.Set(k, h)
			ListAppend(tb, "first", long, long, "last")
			owned++
		}
	}
	store := memstore.New()
	manifests, objects := write(t, s, snapshotOf(t, s, 1), store, "c")
	if n := len(manifests[0].Segments); n < 4 {
		t.Errorf("%d segments for %d bytes", n, manifests[0].Bytes)
	}
	total := 0
	for _, rng := range keyhash.Split(5) {
		r := New(Config{Range: rng, Key: must(KeyOf[uint64]())})
		rt := must(r.Declare(Decl{Name: "new", Former: []string{"v"}, Kind: checkpoint.ListState, Value: must(ValueOf[string](nil))}))
		if err := r.Restore(context.Background(), store, manifests, objects); err != nil {
			t.Fatal(err)
		}
		rk := must(KeyerOf[uint64](r))
		for k := range uint64(1200) {
			if h := rk.Hash(k); rng.Contains(h) && s.cfg.Range.Contains(h) {
				rk.Set(k, h)
				got := ""
				for v := range ListAll[string](rt) {
					got += v
				}
				if got != "first"+long+long+"last" {
					t.Fatalf("key %d: a list of %d bytes", k, len(got))
				}
				total++
			}
		}
	}
	if total != owned {
		t.Errorf("%d keys restored, want %d", total, owned)
	}
}
