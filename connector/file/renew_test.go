package file

import (
	"context"
	"os"
	"path/filepath"
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
