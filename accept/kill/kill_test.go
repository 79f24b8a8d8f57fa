package kill

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	killsFlag = flag.Int("kills", 8, "kills at random moments")
	seedFlag  = flag.Uint64("seed", 0, "seed of the kills; 0: by the clock")
)

func newRand(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (-args -seed=%d)", seed, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// campaign kills a job again and again, and remembers what it saw.
type campaign struct {
	in       *input
	bin      string
	data     string
	mode     string
	interval string
	kills    int
	resumed  int
	ids      map[int]bool
	killed   func() // called after each kill at random, while no process runs
}

// kills is how many kills at random moments there are to be.
func kills() int {
	if testing.Short() {
		return min(*killsFlag, 2)
	}
	return *killsFlag
}

func newCampaign(t *testing.T, in *input, bin, mode string) *campaign {
	return &campaign{in: in, bin: bin, mode: mode, interval: "200ms", data: filepath.Join(t.TempDir(), "data"), ids: map[int]bool{}}
}

func (c *campaign) args(rate int) []string {
	return []string{"--input", c.in.dir, "--data", c.data, "--mode", c.mode, "--rate", strconv.Itoa(rate), "--parallelism", "2", "--interval", c.interval}
}

func (c *campaign) note(p *process) {
	if id, ok := p.resumed(); ok {
		c.resumed++
		c.ids[id] = true
	}
}

// atRandom kills at 0.05 to 1.5 s after each start, until the job was killed n
// times while it was unfinished. It says false if the job finished before.
func (c *campaign) atRandom(t *testing.T, r *rand.Rand, n int) bool {
	t.Helper()
	for range n {
		p := start(t, c.bin, nil, c.args(rate)...)
		select {
		case <-p.exited:
		case <-time.After(50*time.Millisecond + time.Duration(r.Int64N(int64(1450*time.Millisecond)))):
		}
		unfinished := p.kill(t)
		c.note(p)
		if !unfinished {
			return false
		}
		c.kills++
		if c.killed != nil {
			c.killed()
		}
	}
	return true
}

// mustAtRandom is atRandom with an input that is large enough.
func (c *campaign) mustAtRandom(t *testing.T, r *rand.Rand, n int) {
	t.Helper()
	if !c.atRandom(t, r, n) {
		t.Fatalf("the job finished after %d of %d kills: the input is too small for the rate", c.kills, n)
	}
}

// atPoint lets the job kill itself where it passes a point the nth time.
func (c *campaign) atPoint(t *testing.T, name string, nth int) {
	t.Helper()
	at := fmt.Sprintf("%s:%d", name, nth)
	p := start(t, c.bin, []string{pointsEnv + "=" + at}, c.args(rate)...)
	p.diesAt(t, at, 30*time.Second)
	c.note(p)
	c.kills++
}

// duringTakeover kills between the Takeover record and the word that the job
// has resumed.
func (c *campaign) duringTakeover(t *testing.T, n int) {
	t.Helper()
	for done, tries := 0, 0; done < n; tries++ {
		if tries > 20*n {
			t.Fatalf("only %d of %d kills hit the time between takeover and resumption", done, n)
		}
		before := c.logTail(t)
		p := start(t, c.bin, nil, c.args(rate)...)
		for c.logTail(t) == before {
			select {
			case <-p.exited:
				t.Fatalf("the job ended before its takeover: %v\n%s", p.err, p.out)
			case <-time.After(time.Millisecond):
			}
		}
		unfinished := p.kill(t)
		if _, resumed := p.resumed(); unfinished && !resumed {
			done++
			c.kills++
		} else {
			c.note(p)
		}
	}
}

// logTail is the name of the newest record of the checkpoint log.
func (c *campaign) logTail(t *testing.T) string {
	t.Helper()
	es, err := os.ReadDir(filepath.Join(c.data, "checkpoints", "log"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	tail := ""
	for _, e := range es {
		if n := e.Name(); !strings.HasPrefix(n, ".") && n > tail {
			tail = n
		}
	}
	return tail
}

// finish lets the job run to its end at full speed.
func (c *campaign) finish(t *testing.T) *process {
	t.Helper()
	p := start(t, c.bin, nil, c.args(0)...)
	p.finishWithin(t, 2*time.Minute)
	c.note(p)
	return p
}

// rate is how many orders a second the job takes while it is killed.
const rate = 2000

// orders is the main job. The short form takes the one with the kill points,
// which without a word to kill is the same, to build only one.
func orders(t *testing.T) string {
	if testing.Short() {
		return buildWithPoints(t)
	}
	return build(t, "./examples/orders")
}

// An undisturbed run of 100 kills takes 60 s. A job that was lucky and finished
// is judged, and begun anew for the kills that are left.
func TestKillsExactlyOnce(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	kills := kills()
	in := writeInput(t, r, rate*max(kills*60/100, 4), 8, 4, 2, 1)
	c := newCampaign(t, in, orders(t), "exactly-once")
	takeovers := max(kills/10, 1)
	jobs := 1
	for left := kills; !c.atRandom(t, r, left); jobs++ {
		left = kills - c.kills
		c.expectExact(t)
		c.data = filepath.Join(t.TempDir(), "data")
	}
	c.duringTakeover(t, takeovers)
	last := c.finish(t)
	t.Logf("accept: %d orders, %d kills (%d before resumption) of %d jobs, %d starts resumed, %d distinct ids, %s",
		len(in.orders), c.kills, takeovers, jobs, c.resumed, len(c.ids), c.expectExact(t))
	if kills >= 100 && (c.resumed < 60 || len(c.ids) < 30) {
		t.Errorf("%d starts resumed from %d distinct checkpoints, want at least 60 and 30", c.resumed, len(c.ids))
	}
	if want := fmt.Sprintf("orders=%d ledger=%d ", len(in.orders), len(in.orders)); !strings.HasPrefix(last.lastLine(), want) {
		t.Errorf("last line %q, want it to begin with %q", last.lastLine(), want)
	}
}

// expectExact judges a finished job.
func (c *campaign) expectExact(t *testing.T) string {
	t.Helper()
	v := judge(c.in, readLedger(t, c.data))
	wrong := totalsWrong(c.in, readTotals(t, c.data))
	if !v.exact() || wrong > 0 {
		t.Errorf("not exactly once: ledger %+v, %d totals wrong", v, wrong)
	}
	return fmt.Sprintf("%+v, totals wrong %d", v, wrong)
}

// At named points of the store, the file sink and the upsert the process kills
// itself; each point twice, at its first and at a later passage.
func TestKillsAtNamedPoints(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	type kill struct {
		point
		nth int
	}
	var todo []kill
	for _, p := range points {
		todo = append(todo, kill{p, 1}, kill{p, 1})
		if p.later > 0 {
			todo[len(todo)-1].nth = 2 + r.IntN(p.later)
		}
	}
	r.Shuffle(len(todo), func(i, j int) { todo[i], todo[j] = todo[j], todo[i] })
	todo = todo[:min(len(todo), max(2, len(todo)*kills()/50))]

	in := writeInput(t, r, rate*(2+len(todo)*3/4), 8, 4, 2, 1)
	c := newCampaign(t, in, buildWithPoints(t), "exactly-once")
	c.interval = "60ms"
	named := map[string]bool{}
	for _, k := range todo {
		if k.scene != "" {
			c.atPoint(t, k.scene, 1)
		}
		c.atPoint(t, k.name, k.nth)
		named[k.name] = true
	}
	c.finish(t)
	t.Logf("accept: %d kills at %d of %d named points, %d starts resumed, %s", c.kills, len(named), len(points), c.resumed, c.expectExact(t))
}

// A job that has ended ends again at once, with the same results.
func TestFinishedJobEndsAgain(t *testing.T) {
	t.Parallel()
	in := writeInput(t, newRand(t), 3000, 2, 1)
	c := newCampaign(t, in, orders(t), "exactly-once")
	c.finish(t)
	again := c.finish(t)
	if v := judge(in, readLedger(t, c.data)); !v.exact() {
		t.Errorf("after the second run: %+v", v)
	}
	if want := fmt.Sprintf("orders=%d ledger=%d ", len(in.orders), len(in.orders)); !strings.HasPrefix(again.lastLine(), want) {
		t.Errorf("last line %q, want it to begin with %q", again.lastLine(), want)
	}
}
