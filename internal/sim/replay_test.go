package sim

import (
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// A failing seed is of use only if it fails again.
func TestSeedReplaysExactly(t *testing.T) {
	for _, mode := range []checkpoint.Mode{checkpoint.ExactlyOnce, checkpoint.AtLeastOnce, checkpoint.AtMostOnce} {
		for seed := *seedBaseFlag; seed < *seedBaseFlag+20; seed++ {
			a, b := Run(Options{Seed: seed, Mode: mode}), Run(Options{Seed: seed, Mode: mode})
			if a.Digest != b.Digest || a.Steps != b.Steps {
				t.Errorf("%v: seed %d took %d steps with digest %x, then %d with %x", mode, seed, a.Steps, a.Digest, b.Steps, b.Digest)
			}
		}
	}
}
