package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

// splitHost is the enumerator of one source and what it knows of its splits.
// Calls of enum run off the leader's loop, one at a time; everything else
// belongs to the loop.
//
// A split is in exactly one part of a checkpoint. From the snapshot of the
// enumerators on, nothing is handed over to a reader before it has acked or the
// id is given up. What the enumerator has returned by then and the reader has
// not been handed is kept by the checkpoint as held: a call of Discover may
// have been under way, or another checkpoint may be pending that holds it.
type splitHost struct {
	source string
	enum   connector.Enumerator
	assign func(s []connector.Split, parallelism int) []int
	n      int // subtasks

	owner map[string]int
	size  []int64 // weights of all splits
	load  []int64 // by subtask, sum of weights
	next  int     // whose turn it is, for splits without a weight

	waiting [][]checkpoint.Split // by subtask, not handed over yet
	holds   []int                // by subtask, checkpoints for which it must wait
	closed  []bool               // by subtask, NoMoreSplits was sent
	more    bool                 // Discover may find more
}

func newSplitHost(source string, n int, assign func([]connector.Split, int) []int) *splitHost {
	return &splitHost{
		source: source, assign: assign, n: n, owner: map[string]int{}, load: make([]int64, n),
		waiting: make([][]checkpoint.Split, n), holds: make([]int, n), closed: make([]bool, n),
	}
}

// restore hands out the splits of a checkpoint; those read to their end too, as
// some subtask must remember them.
func (h *splitHost) restore(known []checkpoint.Split) error { return h.add(known) }

// discover asks the enumerator for splits that it has not returned before.
func (h *splitHost) discover(ctx context.Context) (splits []checkpoint.Split, more bool, err error) {
	found, more, err := h.enum.Discover(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("source %q: find splits: %w", h.source, err)
	}
	splits = make([]checkpoint.Split, len(found))
	for i, s := range found {
		splits[i] = toSplit(s)
	}
	return splits, more, nil
}

func (h *splitHost) add(splits []checkpoint.Split) error {
	if len(splits) == 0 {
		return nil
	}
	to, err := h.place(splits)
	if err != nil {
		return err
	}
	for i, s := range splits {
		if o, taken := h.owner[s.ID]; taken {
			return fmt.Errorf("source %q: split %q is there twice, subtask %d reads it", h.source, s.ID, o)
		}
		h.owner[s.ID] = to[i]
		h.size = append(h.size, s.Weight)
		h.waiting[to[i]] = append(h.waiting[to[i]], s)
	}
	return nil
}

// held is what no reader was handed yet.
func (h *splitHost) held() (splits []checkpoint.Split) {
	for _, w := range h.waiting {
		splits = append(splits, w...)
	}
	return splits
}

// sizes are the weights of all splits, 0 where it is not known.
func (h *splitHost) sizes() []int64 {
	if h.more {
		return nil // it may grow, so there is no whole
	}
	return h.size
}

// place chooses a subtask for each split: the user's assignment, else the least
// loaded by weight (largest split first), else in turn.
func (h *splitHost) place(splits []checkpoint.Split) ([]int, error) {
	if h.assign != nil {
		return h.placeByUser(splits)
	}
	order := make([]int, len(splits))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(splits[b].Weight, splits[a].Weight), cmp.Compare(splits[a].ID, splits[b].ID))
	})
	to := make([]int, len(splits))
	for _, i := range order {
		if w := splits[i].Weight; w > 0 {
			to[i] = leastLoaded(h.load)
			h.load[to[i]] += w
		} else {
			to[i] = h.next
			h.next = (h.next + 1) % h.n
		}
	}
	return to, nil
}

func leastLoaded(load []int64) int {
	least := 0
	for i, l := range load {
		if l < load[least] {
			least = i
		}
	}
	return least
}

func (h *splitHost) placeByUser(splits []checkpoint.Split) ([]int, error) {
	given := make([]connector.Split, len(splits))
	for i, s := range splits {
		given[i] = fromSplit(s)
	}
	to := h.assign(given, h.n)
	if len(to) != len(splits) {
		return nil, fmt.Errorf("source %q: Assign returned %d subtasks for %d splits", h.source, len(to), len(splits))
	}
	for i, t := range to {
		if t < 0 || t >= h.n {
			return nil, fmt.Errorf("source %q: Assign gave split %q to subtask %d of %d", h.source, splits[i].ID, t, h.n)
		}
	}
	return to, nil
}

// toSplit and fromSplit carry splits between the connector and the protocol.
func toSplit(s connector.Split) checkpoint.Split {
	c := checkpoint.Split{ID: s.ID, N: s.Next.N, State: s.Next.State, Weight: s.Weight}
	if s.End != nil {
		c.End, c.EndState = &s.End.N, s.End.State
	}
	return c
}

func fromSplit(c checkpoint.Split) connector.Split {
	s := connector.Split{ID: c.ID, Next: connector.Offset{N: c.N, State: c.State}, Weight: c.Weight}
	if c.End != nil {
		s.End = &connector.Offset{N: *c.End, State: c.EndState}
	}
	return s
}
