package keyhash

import (
	"math"
	"math/bits"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Split cuts the hashes into the ranges of p subtasks: contiguous, ascending,
// together all hashes, and of one width give or take one. Range i begins at the
// least h with h*p >= i*2^64, which is where Owner turns to i.
func Split(p int) []checkpoint.HashRange {
	if p < 1 {
		panic("keyhash: Split into fewer than one range")
	}
	ranges := make([]checkpoint.HashRange, p)
	for i := range ranges {
		ranges[i].Lo = begin(i, p)
		ranges[i].Hi = math.MaxUint64
		if i > 0 {
			ranges[i-1].Hi = ranges[i].Lo - 1
		}
	}
	return ranges
}

// begin is i*2^64/p, rounded up.
func begin(i, p int) uint64 {
	lo, rem := bits.Div64(uint64(i), 0, uint64(p))
	if rem > 0 {
		lo++
	}
	return lo
}

// Owner is the index of the range of Split(p) that h lies in.
func Owner(h uint64, p int) int {
	i, _ := bits.Mul64(h, uint64(p))
	return int(i)
}

// Mul is the multiplier of the range-normalised index (h-lo)*Mul(r), which
// spreads the hashes of r over 64 bits and keeps their order: floor(2^64/width).
// Without it a subtask's directory would waste a level for each bit that all
// of its hashes share.
func Mul(r checkpoint.HashRange) uint64 {
	width := r.Hi - r.Lo + 1
	switch width {
	case 0: // all hashes: the width is 2^64
		return 1
	case 1: // h-lo is 0 whatever the multiplier; 2^64 would not fit
		return math.MaxUint64
	}
	m, _ := bits.Div64(1, 0, width)
	return m
}
