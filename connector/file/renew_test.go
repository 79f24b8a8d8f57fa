package file

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

func TestRenew(t *testing.T) {
	i := connector.Instance{Job: "j", Operator: "o", Subtask: -1, Generation: 5}
	old := i
	old.Generation, old.Attempt, old.Subtask = 2, 1, 0
	other := old
	other.Operator = "p"
	for _, aside := range []bool{false, true} {
		dir := t.TempDir()
		mine, theirs := segmentName(old, 3, ".jsonl"), segmentName(other, 3, ".jsonl")
		for _, name := range []string{mine, theirs, "notes.txt"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := NewSink(dir, codec.Text())
		s.SetAside = aside
		for range 2 { // an interrupted start does it again
			what, err := s.Renew(context.Background(), i)
			if err != nil {
				t.Fatal(err)
			}
			if !aside && !strings.Contains(what, "1 committed segments stay") {
				t.Errorf("kept: says %q", what)
			}
		}
		_, err := os.Stat(filepath.Join(dir, mine))
		if moved := os.IsNotExist(err); moved != aside {
			t.Errorf("set aside %v: segment moved %v", aside, moved)
		}
		if aside {
			if _, err := os.Stat(filepath.Join(dir, ".before-000005", mine)); err != nil {
				t.Errorf("the segment is not where it was moved to: %v", err)
			}
		}
		for _, name := range []string{theirs, "notes.txt"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Errorf("%s does not belong to the operator: %v", name, err)
			}
		}
	}
}

func TestRenewWithoutOutput(t *testing.T) {
	s := NewSink(filepath.Join(t.TempDir(), "never"), codec.Text())
	what, err := s.Renew(context.Background(), connector.Instance{Job: "j", Operator: "o"})
	if err != nil || !strings.Contains(what, "none") {
		t.Errorf("%q, %v", what, err)
	}
}

// A process may be killed between the moves and their syncs. The next one finds
// nothing to move, and what comes back after a loss of power would stand beside
// its own segments.
func TestInterruptedRenewIsMadeDurable(t *testing.T) {
	s, r := recorded(t)
	s.SetAside = true
	if err := s.Commit(t.Context(), prepared(t, s, at(1, 1, 0), 7, 3)); err != nil {
		t.Fatal(err)
	}
	r.fail = "syncdir a/out/.before-000002"
	if what, err := s.Renew(t.Context(), at(2, 0, -1)); err == nil {
		t.Fatalf("the sync failed, and Renew says %q", what)
	}
	r.fail, r.calls = "", nil
	if _, err := s.Renew(t.Context(), at(3, 0, -1)); err != nil {
		t.Fatal(err)
	}
	// The new entries before the old ones go for good.
	want := []string{"syncdir a/out/.before-000002", "syncdir a/out"}
	if !slices.Equal(r.calls, want) {
		t.Errorf("the next start:\n%s\nwant\n%s", strings.Join(r.calls, "\n"), strings.Join(want, "\n"))
	}
}
