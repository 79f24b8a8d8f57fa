package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/task"
	"github.com/staunchdev/staunch/internal/transport"
)

// localWorkers run all subtasks in this process, connected by rings.
type localWorkers struct {
	env   Env
	ids   []checkpoint.SubtaskID
	tasks map[checkpoint.SubtaskID]*task.Task

	mu   sync.Mutex
	open map[checkpoint.SubtaskID]bool // subtasks that have not closed
}

func newLocalWorkers(env Env) *localWorkers { return &localWorkers{env: env} }

// LocalWorkers returns the workers that an execution has if it is given none.
func LocalWorkers(env Env) Workers { return newLocalWorkers(env) }

// Deploy implements Workers.
func (w *localWorkers) Deploy(d *Deployment) error {
	w.tasks, w.ids, w.open = map[checkpoint.SubtaskID]*task.Task{}, nil, map[checkpoint.SubtaskID]bool{}
	rings := ringsOf(d)
	for v := range d.Job.Plan.Vertices {
		for i := range d.Job.Plan.Vertices[v].Parallelism {
			cfg := wire(w.env, d, rings, v, i)
			t, err := task.New(cfg)
			if err != nil {
				return err
			}
			w.ids = append(w.ids, cfg.ID)
			w.tasks[cfg.ID], w.open[cfg.ID] = t, true
		}
	}
	d.Metrics.observe(w.ids, w.tasks)
	for _, id := range w.ids {
		w.env.Drive(w.tasks[id], func() {
			w.mu.Lock()
			delete(w.open, id)
			last := len(w.open) == 0
			w.mu.Unlock()
			if last {
				d.Stopped()
			}
		})
	}
	if d.Options.Checkpoint.SyncWarning > 0 {
		w.watch(d)
	}
	return nil
}

// Deliver implements Workers.
func (w *localWorkers) Deliver(s checkpoint.SubtaskID, m task.Mail) {
	if t := w.tasks[s]; t != nil {
		t.Deliver(m)
	}
}

// Kill implements Workers.
func (w *localWorkers) Kill(error) {
	for _, id := range w.ids {
		w.tasks[id].Kill()
	}
}

// Stuck implements Workers.
func (w *localWorkers) Stuck() (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.ids {
		if d := w.tasks[id].Doing(); w.open[id] {
			out = append(out, fmt.Sprintf("subtask %v, %v for %v", id, d, time.Duration(w.env.Now()-d.Since).Round(time.Millisecond)))
		}
	}
	return out
}

// watch reports sync phases that take long: nothing else is done meanwhile in
// that subtask, and its barrier has left, so the checkpoint waits for it.
func (w *localWorkers) watch(d *Deployment) {
	limit := d.Options.Checkpoint.SyncWarning
	ids, tasks := w.ids, w.tasks
	told := map[checkpoint.SubtaskID]int64{}
	var look func()
	look = func() {
		if d.Context.Err() != nil {
			return
		}
		for _, id := range ids {
			do := tasks[id].Doing()
			age := time.Duration(w.env.Now() - do.Since)
			if do.Activity == task.Syncing && age > limit && told[id] != do.Since {
				told[id] = do.Since
				d.Options.Log.Warn("sync phase takes long", "subtask", id.String(), "operator", do.Operator, "for", age)
			}
		}
		w.env.After(limit, look)
	}
	w.env.After(limit, look)
}

// rings are the channels of a job, by edge of the graph, sender, receiver;
// nil where there is none.
type rings [][][]*transport.Ring

func ringsOf(d *Deployment) rings {
	p := d.Job.Plan
	all := make(rings, len(p.Graph.Edges))
	for e, edge := range p.Graph.Edges {
		if p.Chained[e] {
			continue
		}
		from, to := p.Vertices[p.VertexOf[edge.From]].Parallelism, p.Vertices[p.VertexOf[edge.To]].Parallelism
		all[e] = make([][]*transport.Ring, from)
		for i := range from {
			all[e][i] = make([]*transport.Ring, to)
			for k := range to {
				if p.Kinds[e] != graph.Forward || i == k {
					all[e][i][k] = transport.NewRing(d.Options.ChannelCapacity)
				}
			}
		}
	}
	return all
}

// wire makes the operators of a subtask, tail first so that each knows its
// consumers, and connects them with each other and with the rings.
func wire(env Env, d *Deployment, rings rings, vertex, index int) task.Config {
	p := d.Job.Plan
	v := p.Vertices[vertex]
	id := checkpoint.SubtaskID{Vertex: v.Name, Index: index}
	cfg := task.Config{
		ID: id, Epoch: d.Epoch, Restored: d.Restored, Mode: d.Options.Mode, Context: d.Context, HashSeed: d.HashSeed,
		Instance: d.Instance(d.Job.Specs[v.Nodes[0]].Meta, index, d.Epoch, d.Lineage),
		Range:    keyhash.Split(v.Parallelism)[index],
		Store:    d.Options.Store,
		Lead:     d.Lead, Exec: executor{env, d.Context}, Packers: d.Packers, Now: env.Now,
		Log:     d.Options.Log,
		Observe: d.Options.Observe,
		Counter: d.Metrics.counter,
		Options: task.Options{AlignmentLimit: d.Options.Checkpoint.AlignmentLimit, Inline: d.Options.Checkpoint.Inline},
	}
	made := make([]operator.Made, len(p.Graph.Nodes))
	ops := make([]task.Op, len(v.Nodes))
	for at := len(v.Nodes) - 1; at >= 0; at-- {
		node := v.Nodes[at]
		spec := d.Job.Specs[node]
		outs, edges := consumers(d, rings, made, node, index)
		cfg.Edges = append(cfg.Edges, edges...)
		made[node] = spec.Make(outs)
		ops[at] = task.Op{Name: spec.Meta.Name, Op: made[node].Op, Restore: d.Restore(node, index)}
	}
	cfg.Ops = ops
	cfg.Entries = made[v.Nodes[0]].Entries
	for _, e := range v.In {
		edge := p.Graph.Edges[e]
		from := p.Vertices[p.VertexOf[edge.From]]
		for i := range rings[e] {
			if r := rings[e][i][index]; r != nil {
				cfg.Inputs = append(cfg.Inputs, task.Input{Ring: r, From: checkpoint.SubtaskID{Vertex: from.Name, Index: i}, Port: edge.ToPort})
			}
		}
	}
	return cfg
}

// consumers are what takes a node's records, by output port: the entries of
// operators that follow in the chain, and writers of the edges that leave it.
func consumers(d *Deployment, rings rings, made []operator.Made, node, index int) ([][]any, []operator.EdgeWriter) {
	p := d.Job.Plan
	spec := d.Job.Specs[node]
	outs := make([][]any, 1+len(p.Graph.Nodes[node].Sides))
	var edges []operator.EdgeWriter
	for e, edge := range p.Graph.Edges {
		switch {
		case edge.From != node:
		case p.Chained[e]:
			outs[edge.Port] = append(outs[edge.Port], made[edge.To].Entries[edge.ToPort].Input())
		default:
			cfg := operator.EdgeConfig{
				Name: spec.Meta.Name + " to " + d.Job.Specs[edge.To].Meta.Name, Kind: p.Kinds[e], HashSeed: d.HashSeed, First: index,
			}
			if p.Kinds[e] == graph.Hash {
				cfg.Hash = d.Job.EdgeHash[e]
			}
			for _, r := range rings[e][index] {
				if r != nil {
					cfg.Outs = append(cfg.Outs, r)
				}
			}
			w := spec.Edge[edge.Port](cfg)
			edges = append(edges, w)
			outs[edge.Port] = append(outs[edge.Port], w.Input())
		}
	}
	return outs, edges
}

// executor runs a subtask's blocking work.
type executor struct {
	env Env
	ctx context.Context
}

func (e executor) Go(work func(ctx context.Context)) {
	e.env.Go("subtask", func() { work(e.ctx) })
}
