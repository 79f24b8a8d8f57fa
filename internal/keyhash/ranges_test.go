package keyhash

import (
	"math"
	"math/big"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

func TestOwnerAgreesWithSplit(t *testing.T) {
	rnd, _ := random(t)
	for p := 1; p <= 300; p++ {
		ranges := Split(p)
		if len(ranges) != p || ranges[0].Lo != 0 || ranges[p-1].Hi != math.MaxUint64 {
			t.Fatalf("p=%d: %d ranges from %#x to %#x", p, len(ranges), ranges[0].Lo, ranges[p-1].Hi)
		}
		least, most := uint64(math.MaxUint64), uint64(0)
		for i, r := range ranges {
			if i > 0 && ranges[i-1].Hi+1 != r.Lo {
				t.Fatalf("p=%d: range %d begins at %#x, range %d ends at %#x", p, i, r.Lo, i-1, ranges[i-1].Hi)
			}
			least, most = min(least, r.Hi-r.Lo), max(most, r.Hi-r.Lo)
			inside := r.Lo + rnd.Uint64N(max(1, r.Hi-r.Lo))
			for _, h := range []uint64{r.Lo, r.Hi, inside} {
				if got := Owner(h, p); got != i || !r.Contains(h) {
					t.Fatalf("p=%d: Owner(%#x) = %d, want %d", p, h, got, i)
				}
			}
		}
		if most-least > 1 {
			t.Errorf("p=%d: widths differ by %d", p, most-least)
		}
		for range 100 {
			if h := rnd.Uint64(); !ranges[Owner(h, p)].Contains(h) {
				t.Fatalf("p=%d: range %d does not contain %#x", p, Owner(h, p), h)
			}
		}
	}
}

func TestMulIsFloorOfTheInverseWidth(t *testing.T) {
	rnd, _ := random(t)
	ranges := []checkpoint.HashRange{
		{Lo: 0, Hi: math.MaxUint64}, {Lo: 0, Hi: math.MaxUint64 - 1}, {Lo: 1, Hi: math.MaxUint64},
		{Lo: 0, Hi: 1<<63 - 1}, {Lo: 1 << 63, Hi: math.MaxUint64}, {Lo: 0, Hi: 1 << 63}, {Lo: 7, Hi: 8}, {Lo: 7, Hi: 9},
	}
	for p := 1; p <= 300; p++ {
		ranges = append(ranges, Split(p)...)
	}
	for range 1000 {
		a, b := rnd.Uint64()>>rnd.UintN(64), rnd.Uint64()>>rnd.UintN(64)
		if a != b {
			ranges = append(ranges, checkpoint.HashRange{Lo: min(a, b), Hi: max(a, b)})
		}
	}
	all := new(big.Int).Lsh(big.NewInt(1), 64)
	for _, r := range ranges {
		width := new(big.Int).SetUint64(r.Hi - r.Lo)
		width.Add(width, big.NewInt(1))
		want := new(big.Int).Div(all, width)
		if got := Mul(r); want.Cmp(new(big.Int).SetUint64(got)) != 0 {
			t.Fatalf("Mul(%#x) = %d, want %d", r, got, want)
		}
		// The index of the last hash does not wrap, so order is kept; and it
		// reaches the upper half, so no directory level is wasted.
		last := new(big.Int).Mul(new(big.Int).SetUint64(r.Hi-r.Lo), want)
		if last.Cmp(all) >= 0 || last.BitLen() < 64 {
			t.Fatalf("%#x: the last index is %d", r, last)
		}
	}
	if m := Mul(checkpoint.HashRange{Lo: 5, Hi: 5}); m == 0 {
		t.Error("Mul of one hash is 0")
	}
}

func FuzzOwner(f *testing.F) {
	f.Add(uint64(0), uint16(1))
	f.Add(uint64(math.MaxUint64), uint16(65535))
	f.Fuzz(func(t *testing.T, h uint64, p uint16) {
		if p == 0 {
			return
		}
		if r := Split(int(p))[Owner(h, int(p))]; !r.Contains(h) {
			t.Errorf("p=%d: %#x does not contain %#x", p, r, h)
		}
	})
}
