package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	mutationsFlag = flag.Bool("mutations", false, "try every mutation instead of a sample")
	mutationFlag  = flag.String("mutation", "", "try the mutations whose name matches")
	huntFlag      = flag.Duration("hunt", 0, "simulate all modes in turn until one fails, for so long at most")
	huntModeFlag  = flag.String("huntmode", "", "with -hunt: simulate -seedbase in this mode only")
)

// mutation is a fault that is put into the engine: a rule of the design, broken.
type mutation struct {
	name  string
	rule  string // the sentence that it breaks
	edits []edit
}

// all are the edits of the mutation and of whatever else keeps its rule.
func (m mutation) all() []edit { return slices.Concat(otherKeepers[m.name], m.edits) }

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
var fewSeeds = map[string]bool{
	"newer-does-not-subsume": true, "assignments-not-held": true, "tail-probed": true,
	"held-splits-forgotten": true, "state-object-unknown-is-durable": true,
}

// TestMutationsFitTheCode keeps the table true without compiling anything.
func TestMutationsFitTheCode(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutations {
		if names[m.name] || m.rule == "" {
			t.Errorf("mutation %s has no rule, or is there twice", m.name)
		}
		names[m.name] = true
		for _, edits := range [][]edit{m.edits, otherKeepers[m.name], m.all()} {
			if _, err := m.apply(t.TempDir(), edits); err != nil {
				t.Error(err)
			}
		}
	}
	for name := range otherKeepers {
		if !names[name] {
			t.Errorf("there are other keepers of %s, which is no mutation", name)
		}
	}
}

// apply writes the mutated files and returns the overlay.
func (m mutation) apply(dir string, edits []edit) (overlay string, err error) {
	replace := map[string]string{}
	for i, e := range edits {
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

// hunt compiles a mutant and has it run seeds until one fails. Where the rule has
// other keepers, that one must find nothing when only they are broken; else the
// hunt goes on behind it.
func hunt(t *testing.T, m mutation) {
	all := compile(t, m, m.all())
	others := ""
	if edits := otherKeepers[m.name]; edits != nil {
		others = compile(t, m, edits)
	}
	const tries = 5
	base := *seedBaseFlag
	for range tries {
		out, err := run(all, fmt.Sprint("-seedbase=", base))
		found := caughtBy.FindStringSubmatch(out)
		switch {
		case err == nil:
			t.Fatalf("NOT CAUGHT: %s\n%s", m.rule, out)
		case found == nil:
			t.Fatalf("%s\nno seed is named: %v\n%.2000s", m.rule, err, out)
		}
		t.Logf("%s\ncaught by %.300s", m.rule, found[0])
		if others == "" {
			return
		}
		if _, err = run(others, "-huntmode="+found[1], "-seedbase="+found[2]); err == nil {
			return
		}
		t.Logf("that seed also notices the other keepers")
		seed, err := strconv.ParseUint(found[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		base = seed + 1
	}
	t.Errorf("NOT CAUGHT: %s\nall of %d seeds notice the other keepers without the rule", m.rule, tries)
}

func run(mutant string, args ...string) (string, error) {
	args = append([]string{"-test.run=^TestHunt$", "-test.timeout=10m", "-hunt=150s"}, args...)
	out, err := exec.Command(mutant, args...).CombinedOutput()
	return string(out), err
}

// caughtBy is the report of a hunt: the mode and the seed.
var caughtBy = regexp.MustCompile(`([a-z-]+): seed (\d+), the \d+\. tried: .*`)

// compile compiles a mutant.
func compile(t *testing.T, m mutation, edits []edit) (bin string) {
	t.Helper()
	dir := t.TempDir()
	overlay, err := m.apply(dir, edits)
	if err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(dir, "mutant.test")
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-p=1", "-overlay", overlay, "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// TestMutationsAreExplained holds the page that says which mutation stands for
// which rule to the table.
func TestMutationsAreExplained(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "mutations.md"))
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, row := range strings.Split(string(page), "\n") {
		if cells := strings.Split(row, "|"); len(cells) == 4 {
			for _, name := range regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(cells[2], -1) {
				explained[name[1]] = true
			}
		}
	}
	for _, m := range mutations {
		if !explained[m.name] {
			t.Errorf("docs/mutations.md does not say which rule mutation %s breaks", m.name)
		}
		delete(explained, m.name)
	}
	for name := range explained {
		t.Errorf("docs/mutations.md names mutation %s, which is not in the table", name)
	}
}
