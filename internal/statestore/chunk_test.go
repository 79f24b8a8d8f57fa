package statestore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

func TestChunksThatAreGarbageAreCopiedOut(t *testing.T) {
	s := New(Config{Range: everything, Key: must(KeyOf[string]())})
	tb := must(s.Declare(Decl{Name: "a", Kind: checkpoint.ValueState, Value: must(ValueOf[account](nil))}))
	kr := must(KeyerOf[string](s))
	keys := names(5000)
	ss := snapshots{s: s, every: time.Millisecond}
	var kept []string
	for round := range 60 {
		for i, k := range keys {
			kr.Set(k, kr.Hash(k))
			a, _ := Get[account](tb)
			if want := text(k, round-1); round > 0 && a.Name != want {
				t.Fatalf("key %s: %q, want %q", k, a.Name, want)
			}
			if i == 7 {
				kept = append(kept, a.Name)
			}
			a.Name = text(k, round)
			Set(tb, a)
			if i%100 == 0 {
				s.EndKey()
				ss.poll(t)
			}
		}
	}
	if ss.sn != nil {
		<-ss.done
		ss.sn.Release()
	}
	s.Sweep(10_000)
	if m := s.Memory(); m.Chunks > 6*m.Live {
		t.Errorf("chunks take %d bytes for %d live ones", m.Chunks, m.Live)
	}
	for round, v := range kept[1:] {
		if want := text(keys[7], round); v != want {
			t.Fatalf("a string that Get returned is now %q, was %q", v, want)
		}
	}
}

// TestFewLiveBytesDoNotKeepTheirChunks has a short string that never changes
// between long ones that do.
func TestFewLiveBytesDoNotKeepTheirChunks(t *testing.T) {
	s := New(Config{Range: everything, Key: must(KeyOf[uint64]())})
	v := must(s.Declare(Decl{Name: "v", Kind: checkpoint.ValueState, Value: must(ValueOf[account](nil))}))
	m := must(s.Declare(Decl{Name: "m", Kind: checkpoint.MapState, Value: must(ValueOf[string](nil)), Sub: must(KeyOf[string]())}))
	kr, sub := must(KeyerOf[uint64](s)), must(SubOf[string](0))
	const keys = 3000
	short := func(k uint64) string { return fmt.Sprintf("the short string of %d", k) }
	set := func(k uint64, text string) {
		kr.Set(k, kr.Hash(k))
		Set(v, account{Name: text})
		MapSet(m, sub, fmt.Sprintf("the key of entry %d of a map", k), text)
		s.EndKey()
	}
	for k := range uint64(keys) {
		if text := short(k); k%10 == 0 {
			set(k, text)
		} else {
			set(k, strings.Repeat(text, 100))
		}
	}
	for k := range uint64(keys) {
		if k%10 != 0 {
			set(k, short(k))
		}
	}
	for range 3 {
		s.Sweep(10_000)
	}
	if m := s.Memory(); m.Chunks > 2*s.minCompact { // below, no state begins a pass
		t.Errorf("chunks take %d bytes for %d live ones", m.Chunks, m.Live)
	}
	for k := range uint64(keys) {
		kr.Set(k, kr.Hash(k))
		a, _ := Get[account](v)
		text, ok := MapGet[string, string](m, sub, fmt.Sprintf("the key of entry %d of a map", k))
		if a.Name != short(k) || text != short(k) || !ok {
			t.Fatalf("key %d: %q and %q", k, a.Name, text)
		}
	}
}

func text(k string, round int) string { return fmt.Sprintf("%s in round %d, and some more", k, round) }
