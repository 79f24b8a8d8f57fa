package task

import (
	"fmt"
	"testing"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/transport"
)

// chain is two subtasks source -> counter, whose edges lead to one counter.
type chain struct {
	*pipeline
	upstream []*counter
}

func newChain(t *testing.T) *chain {
	c := &chain{pipeline: &pipeline{world: &world{t: t, now: 1}}}
	last := &counter{name: "count"}
	var inputs []Input
	for i := range 2 {
		ring := transport.NewRing(8)
		e := operator.NewEdge[int](operator.EdgeConfig{Name: "up -> count", Kind: graph.Rebalance, Outs: []operator.Channel{ring}})
		up := &counter{name: "up", out: operator.NewOutput[int]([]any{e.Input()})}
		r := &numbers{}
		made := operator.NewSource(operator.SourceConfig[int]{Name: "numbers", Reader: r.open, Outs: []any{operator.NewEntry[int](up).Input()}})
		task := c.add(Config{
			ID: sourceID(i), Mode: checkpoint.ExactlyOnce, Instance: connector.Instance{Subtask: i, Parallelism: 2},
			Ops: []Op{{Name: "numbers", Op: made.Op}, {Name: "up", Op: up}}, Edges: []operator.EdgeWriter{e},
		})
		task.Deliver(AddSplits{[]checkpoint.Split{{ID: fmt.Sprint("split-", i)}}})
		c.readers, c.sources, c.upstream = append(c.readers, r), append(c.sources, task), append(c.upstream, up)
		inputs = append(inputs, Input{Ring: ring, From: sourceID(i)})
	}
	c.keyed = []*Task{c.add(Config{
		ID: keyedID(0), Mode: checkpoint.ExactlyOnce, Ops: []Op{{Name: "count", Op: last}},
		Entries: []operator.Entry{operator.NewEntry[int](last)}, Inputs: inputs,
	})}
	c.counters = []*counter{last}
	return c
}
