package sim

import (
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// TestHunt runs in a mutant: the modes in turn, until a seed fails.
func TestHunt(t *testing.T) {
	if *huntFlag == 0 {
		t.Skip("runs with -hunt")
	}
	began, base, n, tried := time.Now(), *seedBaseFlag, 60, 0
	if *huntModeFlag != "" {
		n = 1
	}
	for time.Since(began) < *huntFlag {
		for _, mode := range []checkpoint.Mode{checkpoint.ExactlyOnce, checkpoint.AtMostOnce, checkpoint.AtLeastOnce} {
			if *huntModeFlag != "" && *huntModeFlag != mode.String() {
				continue
			}
			a := runSeeds(mode, base, n, *huntFlag)
			tried += a.seeds
			if a.failure != nil {
				t.Fatalf("%v: seed %d, the %d. tried: %v", mode, a.failing, tried, a.failure)
			}
		}
		if *huntModeFlag != "" {
			return
		}
		base += uint64(n)
		n = min(2*n, 1000)
	}
	t.Logf("%d seeds of each mode, and none failed", base-*seedBaseFlag)
}

// runNamed runs a seed, and sees to it that the seed is named whatever becomes of
// the run: a panic while it is taken down is its result, and one that does not
// come to an end says so, so that no mutant, and no bug, just kills the tests.
func runNamed(o Options) (r Result) {
	hangs := time.AfterFunc(2*time.Minute, func() {
		panic(fmt.Sprintf("%v: seed %d, the 1. tried: it has not ended for two minutes", o.Mode, o.Seed))
	})
	defer hangs.Stop()
	defer func() {
		if p := recover(); p != nil {
			r.Err = fmt.Errorf("panic at its end: %v\n%s", p, debug.Stack())
		}
	}()
	return Run(o)
}
