package file

import (
	"os"
	"path/filepath"
	"testing"
)

// A fresh start that was taken over may hear of it late: what the new owner has
// written meanwhile stays where it is.
func TestRenewOfAFencedStartLeavesNewerOutput(t *testing.T) {
	s, _ := recorded(t)
	s.SetAside = true
	name := segmentName(at(3, 1, 0), 3, ".jsonl")
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, name), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Renew(t.Context(), at(2, 0, -1)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, name)); err != nil {
		t.Errorf("a segment of a newer generation was moved: %v", err)
	}
}
