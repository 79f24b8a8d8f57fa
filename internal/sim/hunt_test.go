package sim

import (
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// TestHunt runs in a mutant: the modes in turn, until a seed fails.
func TestHunt(t *testing.T) {
	if *huntFlag == 0 {
		t.Skip("runs with -hunt")
	}
	began, base, n := time.Now(), *seedBaseFlag, 60
	for time.Since(began) < *huntFlag {
		for _, mode := range []checkpoint.Mode{checkpoint.ExactlyOnce, checkpoint.AtMostOnce, checkpoint.AtLeastOnce} {
			if a := runSeeds(mode, base, n, *huntFlag); a.failure != nil {
				t.Fatalf("%v: seed %d: %v", mode, a.failing, a.failure)
			}
		}
		base += uint64(n)
		n = min(2*n, 1000)
	}
	t.Logf("%d seeds of each mode, and none failed", base-*seedBaseFlag)
}
