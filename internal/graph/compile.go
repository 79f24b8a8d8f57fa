package graph

import (
	"errors"
	"fmt"
	"slices"
)

// Compile turns g into a physical plan for a default parallelism. It changes
// nothing in g. The error lists every fault (errors.Join). The same graph gives
// the same plan, in every process.
func Compile(g Graph, parallelism int) (*Plan, error) {
	c := &Graph{Job: g.Job, Nodes: slices.Clone(g.Nodes), Edges: slices.Clone(g.Edges)}
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }

	if c.Job == "" {
		fault("the job has no name")
	}
	if parallelism < 1 {
		fault("parallelism %d of job %q: at least 1 is needed", parallelism, c.Job)
	}
	nameNodes(c.Nodes)
	faults = append(faults, checkNodes(c.Nodes)...)
	faults = append(faults, checkEdges(c)...)
	if len(faults) > 0 {
		// Edges that point nowhere would break what follows.
		return nil, errors.Join(faults...)
	}
	for i := range c.Nodes {
		if c.Nodes[i].Parallelism == 0 {
			c.Nodes[i].Parallelism = parallelism
		}
	}
	order, err := topological(c)
	if err != nil {
		return nil, err
	}
	return chain(c, order), nil
}

// checkNodes finds the faults of single nodes and of their names. Named nodes
// are what a checkpoint knows; an empty name there would be a second identity
// on the next change of the graph.
func checkNodes(nodes []Node) (faults []error) {
	seen := map[string]int{}
	for i, n := range nodes {
		if n.Name == "" {
			faults = append(faults, fmt.Errorf("operator %d (%s) has no name: its name is the identity of its state", i, n.Kind))
			continue
		}
		if j, ok := seen[n.Name]; ok {
			faults = append(faults, fmt.Errorf("duplicate name %q: %s and %s", n.Name, nodes[j].Kind, n.Kind))
		}
		seen[n.Name] = i
		if n.Parallelism < 0 {
			faults = append(faults, fmt.Errorf("operator %q: parallelism %d: at least 1 is needed", n.Name, n.Parallelism))
		}
		if n.Stateful && !n.Named {
			faults = append(faults, fmt.Errorf("operator %q keeps state and needs a name of its own", n.Name))
		}
	}
	return faults
}

func checkEdges(g *Graph) (faults []error) {
	inputs := make([]int, len(g.Nodes))
	for i, e := range g.Edges {
		if e.From < 0 || e.From >= len(g.Nodes) || e.To < 0 || e.To >= len(g.Nodes) {
			faults = append(faults, fmt.Errorf("edge %d joins operators %d and %d of %d", i, e.From, e.To, len(g.Nodes)))
			continue
		}
		from, to := g.Nodes[e.From], g.Nodes[e.To]
		if e.Port < 0 || e.Port > len(from.Sides) {
			faults = append(faults, fmt.Errorf("edge %q -> %q leaves by port %d of %d", from.Name, to.Name, e.Port, 1+len(from.Sides)))
		}
		if e.Kind < Forward || e.Kind > Broadcast {
			faults = append(faults, fmt.Errorf("edge %q -> %q has no kind", from.Name, to.Name))
		}
		if to.Source != nil {
			faults = append(faults, fmt.Errorf("source %q has an input, from %q", to.Name, from.Name))
		}
		if from.Sink != nil {
			faults = append(faults, fmt.Errorf("sink %q has an output, to %q", from.Name, to.Name))
		}
		if to.Keyed && e.Kind != Hash {
			faults = append(faults, fmt.Errorf("operator %q is keyed, but its input from %q is a %s edge", to.Name, from.Name, e.Kind))
		}
		inputs[e.To]++
	}
	for i, n := range g.Nodes {
		if n.Source == nil && inputs[i] == 0 {
			faults = append(faults, fmt.Errorf("operator %q has no input", n.Name))
		}
	}
	return faults
}

// topological orders the nodes so that every edge points forward; among those
// that are free the lowest index comes first.
func topological(g *Graph) ([]int, error) {
	waits := make([]int, len(g.Nodes))
	for _, e := range g.Edges {
		waits[e.To]++
	}
	done := make([]bool, len(g.Nodes))
	order := make([]int, 0, len(g.Nodes))
	for len(order) < len(g.Nodes) {
		next := -1
		for i := range g.Nodes {
			if !done[i] && waits[i] == 0 {
				next = i
				break
			}
		}
		if next < 0 {
			var in []string
			for i, n := range g.Nodes {
				if !done[i] {
					in = append(in, n.Name)
				}
			}
			return nil, fmt.Errorf("the graph has a cycle among %q", in)
		}
		done[next] = true
		order = append(order, next)
		for _, e := range g.Edges {
			if e.From == next {
				waits[e.To]--
			}
		}
	}
	return order, nil
}
