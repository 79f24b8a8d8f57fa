package sim

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

var (
	seedsFlag    = flag.Int("seeds", 0, "seeds to simulate in each mode; 0: what is done in 10 s")
	seedFlag     = flag.Uint64("seed", 0, "simulate this seed only, and print what happens")
	seedBaseFlag = flag.Uint64("seedbase", 1, "the first seed")
)

func TestSimulateExactlyOnce(t *testing.T) { simulate(t, checkpoint.ExactlyOnce) }
func TestSimulateAtLeastOnce(t *testing.T) { simulate(t, checkpoint.AtLeastOnce) }
func TestSimulateAtMostOnce(t *testing.T)  { simulate(t, checkpoint.AtMostOnce) }

// TestSimulateCoverage comes after the others, and looks at what they met.
func TestSimulateCoverage(t *testing.T) {
	if !*coverageFlag {
		t.Skip("runs with -coverage")
	}
	checkCoverage(t, covered, coveredSeeds)
}

// tally is what many seeds came to.
type tally struct {
	seeds, crashed, twoCheckpoints, rivals, restarts, checkpoints, failed, trims, steps int
	stops, branches, pins, alarms                                                       int
	failure                                                                             error
	failing                                                                             uint64
	cover                                                                               *Coverage
}

func (a *tally) add(seed uint64, r Result) {
	a.seeds++
	if r.Crashes > 0 {
		a.crashed++
	}
	if r.Checkpoints >= 2 {
		a.twoCheckpoints++
	}
	a.rivals += min(r.Rivals-1, 1)
	a.stops += r.Stops
	a.branches += r.Branches
	a.pins += r.Pins
	a.alarms += r.Alarms
	a.restarts += r.Restarts
	a.checkpoints += r.Checkpoints
	a.failed += r.Failed
	a.trims += r.Trims
	a.steps += r.Steps
	if r.Err == nil && r.Records < 200 {
		r.Err = fmt.Errorf("only %d records", r.Records)
	}
	if r.Err == nil && r.Subtasks < 2 {
		r.Err = fmt.Errorf("only %d subtasks with state", r.Subtasks)
	}
	if r.Err != nil && (a.failure == nil || seed < a.failing) {
		a.failure, a.failing = r.Err, seed
	}
}

// runSeeds simulates seeds on every core until there are n, the time is over
// (if n is 0), or one fails.
func runSeeds(mode checkpoint.Mode, base uint64, n int, limit time.Duration) *tally {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var (
		next  atomic.Uint64
		stop  atomic.Bool
		mu    sync.Mutex
		wg    sync.WaitGroup
		total = &tally{cover: NewCoverage()}
		until = time.Now().Add(limit)
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			cover := NewCoverage()
			for !stop.Load() {
				i := next.Add(1) - 1
				if n > 0 && i >= uint64(n) || limit > 0 && time.Now().After(until) {
					break
				}
				one := NewCoverage()
				r := runNamed(Options{Seed: base + i, Mode: mode, Cover: one})
				cover.Add(one)
				if r.Err != nil {
					stop.Store(true)
				}
				mu.Lock()
				total.add(base+i, r)
				mu.Unlock()
			}
			mu.Lock()
			total.cover.Add(cover)
			mu.Unlock()
		})
	}
	wg.Wait()
	return total
}

func simulate(t *testing.T, mode checkpoint.Mode) {
	if *seedFlag != 0 {
		r := Run(Options{Seed: *seedFlag, Mode: mode, Cover: NewCoverage(), Trace: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }})
		fmt.Printf("%+v\n", r)
		if r.Err != nil {
			t.Error(r.Err)
		}
		return
	}
	limit := 10 * time.Second
	if testing.Short() {
		limit = 3 * time.Second
	}
	if *seedsFlag > 0 {
		limit = 0
	}
	began := time.Now()
	a := runSeeds(mode, *seedBaseFlag, *seedsFlag, limit)
	took := time.Since(began)
	t.Logf("accept: %v: %d seeds from %d, %.0f/s, crashes %d%%, >=2 checkpoints %d%%, takeovers %d%%; a seed: %.1f checkpoints, %.1f failed, %.1f restarts, %.1f trims, %d steps",
		mode, a.seeds, *seedBaseFlag, float64(a.seeds)/took.Seconds(), 100*a.crashed/a.seeds, 100*a.twoCheckpoints/a.seeds, 100*a.rivals/a.seeds,
		per(a.checkpoints, a), per(a.failed, a), per(a.restarts, a), per(a.trims, a), a.steps/a.seeds)
	t.Logf("of these seeds the user made %d stops, %d starts from an older checkpoint or fresh, and %d pins; %d timers fired", a.stops, a.branches, a.pins, a.alarms)
	covered.Add(a.cover)
	coveredSeeds += a.seeds
	if a.failure != nil {
		t.Fatalf("seed %d: %v\nreplay: go test ./internal/sim -run '^%s$' -v -args -seed %d", a.failing, a.failure, t.Name(), a.failing)
	}
	if a.seeds >= 100 && (100*a.crashed < 60*a.seeds || 100*a.twoCheckpoints < 50*a.seeds) {
		t.Errorf("of %d seeds %d crash and %d complete two checkpoints: too few", a.seeds, a.crashed, a.twoCheckpoints)
	}
}

// covered adds up what all modes met, in so many seeds.
var (
	covered      = NewCoverage()
	coveredSeeds int
)

func per(n int, a *tally) float64 { return float64(n) / float64(a.seeds) }
