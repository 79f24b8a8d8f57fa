package sim

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	mutationsFlag = flag.Bool("mutations", false, "try every mutation instead of a sample")
	mutationFlag  = flag.String("mutation", "", "try the mutations whose name matches")
	huntFlag      = flag.Duration("hunt", 0, "simulate all modes in turn until one fails, for so long at most")
)

// mutation is a fault that is put into the engine: a rule of the design, broken.
type mutation struct {
	name  string
	rule  string // the sentence that it breaks
	edits []edit
}

// edit replaces a text that is there exactly once. File is a path below the
// module.
type edit struct{ file, old, new string }

// TestMutations shows that the simulator notices faults: each mutation is
// compiled in by an overlay, so that no switch for it is in the code, and has to
// be caught by some seed.
func TestMutations(t *testing.T) {
	chosen := mutations
	switch {
	case *huntFlag > 0:
		t.Skip("this is a mutant")
	case *mutationFlag != "":
		match := regexp.MustCompile(*mutationFlag)
		chosen = nil
		for _, m := range mutations {
			if match.MatchString(m.name) {
				chosen = append(chosen, m)
			}
		}
	case testing.Short():
		t.Skip("takes a compilation a mutation")
	case !*mutationsFlag:
		seed := uint64(time.Now().UnixNano())
		t.Logf("a sample of 3, seed %d; all with -mutations", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		chosen = nil
		for _, i := range r.Perm(len(mutations)) {
			if len(chosen) < 3 && !fewSeeds[mutations[i].name] {
				chosen = append(chosen, mutations[i])
			}
		}
	}
	caught := 0
	for _, m := range chosen {
		if t.Run(m.name, func(t *testing.T) { hunt(t, m) }) {
			caught++
		}
	}
	t.Logf("accept: %d of %d mutations caught, the table has %d", caught, len(chosen), len(mutations))
}

// fewSeeds are mutations that take a schedule which few seeds have: they are tried
// with -mutations, and not in the sample, which must be quick.
var fewSeeds = map[string]bool{"genesis-trimmed": true, "void-without-list": true, "fenced-goes-on": true, "aborted-barrier-begins": true}

// TestMutationsFitTheCode keeps the table true without compiling anything.
func TestMutationsFitTheCode(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutations {
		if names[m.name] || m.rule == "" {
			t.Errorf("mutation %s has no rule, or is there twice", m.name)
		}
		names[m.name] = true
		if _, err := m.apply(t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}

// apply writes the mutated files and returns the overlay.
func (m mutation) apply(dir string) (overlay string, err error) {
	replace := map[string]string{}
	for i, e := range m.edits {
		path, err := filepath.Abs(filepath.Join("..", "..", e.file))
		if err != nil {
			return "", err
		}
		from := path
		if r, ok := replace[path]; ok {
			from = r
		}
		src, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(src), e.old); n != 1 {
			return "", fmt.Errorf("mutation %s: what it replaces is %d times in %s", m.name, n, e.file)
		}
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(e.file)))
		if err := os.WriteFile(to, []byte(strings.Replace(string(src), e.old, e.new, 1)), 0o644); err != nil {
			return "", err
		}
		replace[path] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o644)
}

var caughtBy = regexp.MustCompile(`(?m)^\s*hunt_test.go:\d+: (.+: seed \d+: .*)$`)

// hunt compiles a mutant and has it run seeds until one fails.
func hunt(t *testing.T, m mutation) {
	dir := t.TempDir()
	overlay, err := m.apply(dir)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-p=1", "-overlay", overlay, "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(bin, "-test.run=^TestHunt$", "-test.timeout=10m", "-hunt=150s").CombinedOutput()
	text := string(out)
	switch found := caughtBy.FindStringSubmatch(text); {
	case err == nil:
		t.Errorf("NOT CAUGHT: %s\n%s", m.rule, text)
	case found != nil:
		t.Logf("%s\ncaught by %.300s", m.rule, found[1])
	case errors.As(err, new(*exec.ExitError)):
		t.Logf("%s\ncaught: the mutant dies: %.500s", m.rule, text)
	default:
		t.Fatal(err)
	}
}
