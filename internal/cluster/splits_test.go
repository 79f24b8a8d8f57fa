package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

func splitsOf(weights ...int64) []checkpoint.Split {
	var out []checkpoint.Split
	for i, w := range weights {
		out = append(out, checkpoint.Split{ID: string(rune('a' + i)), Weight: w})
	}
	return out
}

func owned(h *splitHost) string {
	var parts []string
	for _, w := range h.waiting {
		var ids []string
		for _, s := range w {
			ids = append(ids, s.ID)
		}
		slices.Sort(ids)
		parts = append(parts, strings.Join(ids, ""))
	}
	return strings.Join(parts, " ")
}

func TestSplitsArePlaced(t *testing.T) {
	byUser := func(s []connector.Split, n int) []int {
		to := make([]int, len(s))
		for i := range to {
			to[i] = n - 1
		}
		return to
	}
	tests := []struct {
		name   string
		n      int
		assign func([]connector.Split, int) []int
		splits []checkpoint.Split
		want   string
	}{
		{"in turn without weights", 2, nil, splitsOf(0, 0, 0), "ac b"},
		{"largest first to the least loaded", 2, nil, splitsOf(1, 2, 4, 8), "d abc"},
		{"equal weights alternate", 3, nil, splitsOf(5, 5, 5, 5), "ad b c"},
		{"as the user says", 2, byUser, splitsOf(1, 2), " ab"},
	}
	for _, tt := range tests {
		h := newSplitHost("s", tt.n, tt.assign)
		if err := h.add(tt.splits); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := owned(h); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestSplitPlacementRefusesNonsense(t *testing.T) {
	tests := []struct {
		name   string
		assign func([]connector.Split, int) []int
		want   string
	}{
		{"too few", func([]connector.Split, int) []int { return nil }, `source "s": Assign returned 0 subtasks for 1 splits`},
		{"outside", func([]connector.Split, int) []int { return []int{2} }, `source "s": Assign gave split "a" to subtask 2 of 2`},
	}
	for _, tt := range tests {
		err := newSplitHost("s", 2, tt.assign).add(splitsOf(1))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	h := newSplitHost("s", 2, nil)
	if err := h.add(splitsOf(0)); err != nil {
		t.Fatal(err)
	}
	if err := h.add(splitsOf(0)); err == nil || !strings.Contains(err.Error(), `split "a" is there twice, subtask 0 reads it`) {
		t.Errorf("a split that is there twice: %v", err)
	}
}

func TestSplitKeepsWhatItCarries(t *testing.T) {
	in := connector.Split{ID: "x", Next: connector.Offset{N: 7, State: []byte("s")}, End: &connector.Offset{N: 9, State: []byte("e")}, Weight: 3}
	out := fromSplit(toSplit(in))
	if out.ID != in.ID || out.Next.N != 7 || string(out.Next.State) != "s" || out.End == nil || out.End.N != 9 || string(out.End.State) != "e" || out.Weight != 3 {
		t.Errorf("got %+v", out)
	}
}
