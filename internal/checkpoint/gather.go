package checkpoint

import (
	"fmt"
	"slices"
	"strings"
)

// Gathered is what all subtasks of an operator acknowledged apart from keyed
// state, in a fixed order: what the shell packs.
type Gathered struct {
	Operator     string
	Lists        []ListAck // the elements of all subtasks, by state name
	Splits       []Split   // by id
	Committables []Committable
}

// Gather returns it for every operator of the plan. A split that two readers
// claim, or a committable of two subtasks, is an error: it would be read, or
// committed, twice.
func Gather(plan []OperatorMeta, acks []Ack) ([]Gathered, error) {
	all := make([]Gathered, 0, len(plan))
	for _, meta := range plan {
		parts, err := partsOf(meta, acks)
		if err != nil {
			return nil, fmt.Errorf("gather operator %s: %w", meta.Name, err)
		}
		g := Gathered{Operator: meta.Name}
		for _, p := range parts {
			g.Splits = append(g.Splits, p.Splits...)
			g.Committables = append(g.Committables, p.Committables...)
			for _, l := range p.Lists {
				if err := g.addList(l); err != nil {
					return nil, fmt.Errorf("gather operator %s: %w", meta.Name, err)
				}
			}
		}
		if err := g.sort(); err != nil {
			return nil, fmt.Errorf("gather operator %s: %w", meta.Name, err)
		}
		all = append(all, g)
	}
	return all, nil
}

// addList appends a subtask's elements. A broadcast state is the same on all:
// the first copy stands for it.
func (g *Gathered) addList(l ListAck) error {
	i := slices.IndexFunc(g.Lists, func(o ListAck) bool { return o.State == l.State })
	if i < 0 {
		l.Elements = slices.Clone(l.Elements)
		g.Lists = append(g.Lists, l)
		return nil
	}
	if g.Lists[i].Mode != l.Mode {
		return fmt.Errorf("operator state %s has modes %d and %d", l.State, g.Lists[i].Mode, l.Mode)
	}
	if l.Mode != Broadcast {
		g.Lists[i].Elements = append(g.Lists[i].Elements, l.Elements...)
	}
	return nil
}

func (g *Gathered) sort() error {
	slices.SortFunc(g.Lists, func(a, b ListAck) int { return strings.Compare(a.State, b.State) })
	slices.SortStableFunc(g.Splits, func(a, b Split) int { return strings.Compare(a.ID, b.ID) })
	for i := 1; i < len(g.Splits); i++ {
		if g.Splits[i].ID == g.Splits[i-1].ID {
			return fmt.Errorf("split %s is owned twice", g.Splits[i].ID)
		}
	}
	// A committable of a lower checkpoint is committed first.
	slices.SortStableFunc(g.Committables, func(a, b Committable) int {
		if c := compareIDs(a.Prepared, b.Prepared); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	for i := 1; i < len(g.Committables); i++ {
		if a, b := g.Committables[i-1], g.Committables[i]; a.ID == b.ID && a.Prepared == b.Prepared {
			return fmt.Errorf("committable %s of checkpoint %d is held twice", b.ID, b.Prepared)
		}
	}
	return nil
}
