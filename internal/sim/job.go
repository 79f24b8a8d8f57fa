package sim

import (
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/internal/operator"
)

// builder puts the graph of the job together from operators of this package.
type builder struct {
	*Parts
	g     graph.Graph
	specs []operator.Spec
	hash  []any
}

// ownJob is the Job that is simulated if no other one is given.
func ownJob(x *Parts) cluster.Job {
	b := &builder{Parts: x, g: graph.Graph{Job: jobName}}
	accounts := x.Accounts()
	var sources []int
	for s := range x.Sources() {
		n := x.Parallelism(2)
		sources = append(sources, b.source(s, n))
		if s == 0 && x.w.journal {
			// One chain: the source prepares when its sink does.
			b.edge(sources[0], sinkNode(b, "journal", n, x.journal()), graph.Forward, nil)
		}
	}
	var tend func(account, line, Clock) (account, line)
	var ring func(account, int64) (account, line)
	if x.Alarms() {
		tend, ring = x.Tend, x.Ring
	}
	account := keyedNode(b, keyed[order, line]{
		name: "account", keyOf: func(o order) uint32 { return o.Key }, orderOf: func(o order) order { return o },
		fold: enter, tend: tend, ring: ring,
	}, accounts)
	for _, s := range sources {
		b.edge(s, account, graph.Hash, hashBy(func(o order) uint32 { return o.Key }))
	}
	b.edge(account, sinkNode(b, "ledger", x.SinkParallelism(accounts), x.Ledger()), graph.Forward, nil)
	if x.Stages() == 2 {
		n := x.Parallelism(2)
		bucket := keyedNode(b, keyed[line, total]{name: "bucket", keyOf: bucketOf, orderOf: line.AppliedOrder, fold: sumUp}, n)
		b.edge(account, bucket, graph.Hash, hashBy(bucketOf))
		b.edge(bucket, sinkNode(b, "totals", x.SinkParallelism(n), x.Totals()), graph.Forward, nil)
	}
	plan, err := graph.Compile(b.g, 1)
	if err != nil {
		panic(err)
	}
	return cluster.Job{Name: jobName, Plan: plan, Specs: b.specs, EdgeHash: b.hash}
}

const jobName = "sim"

// job makes the job as process p runs it, with a tap on every operator.
func (w *world) job(p *process) cluster.Job {
	build := w.Job
	if build == nil {
		build = ownJob
	}
	p.cost = map[string]int64{}
	for _, name := range []string{"account", "bucket"} {
		if w.rng.IntN(3) == 0 {
			p.cost[name] = w.recordCost
		}
	}
	j := build(&Parts{w, p})
	for i := range j.Specs {
		spec := &j.Specs[i]
		make := spec.Make
		spec.Make = func(outs [][]any) operator.Made { return w.tap(p, make(outs)) }
		for k, edge := range spec.Edge {
			spec.Edge[k] = func(c operator.EdgeConfig) operator.EdgeWriter {
				c.Batch = w.batch
				return edge(c)
			}
		}
	}
	return j
}

// parallel is a parallelism: now, unless it is another one at each start.
func (w *world) parallel(now, most int) int {
	if w.rescale && w.started > 1 || now == 0 {
		return 1 + w.rng.IntN(most)
	}
	return now
}

func (b *builder) node(n graph.Node, s operator.Spec) int {
	n.Named = true
	s.Meta.Name, s.Meta.Kind, s.Meta.Key, s.Meta.States = n.Name, n.Kind, n.Key, n.States
	b.g.Nodes = append(b.g.Nodes, n)
	b.specs = append(b.specs, s)
	return len(b.g.Nodes) - 1
}

func (b *builder) edge(from, to int, kind graph.EdgeKind, hash any) {
	b.g.Edges = append(b.g.Edges, graph.Edge{From: from, To: to, Kind: kind})
	b.hash = append(b.hash, hash)
}

func (b *builder) source(s, parallelism int) int {
	name, src := string(rune('a'+s)), b.Source(s)
	return b.node(graph.Node{
		Name: name, Kind: "source", Parallelism: parallelism,
		Source: &graph.SourceInfo{Replayable: true, Bounded: true},
	}, operator.Spec{
		Make: func(outs [][]any) operator.Made {
			return operator.NewSource(operator.SourceConfig[order]{Name: name, Outs: outs[0], Reader: src.Reader})
		},
		Edge:       []func(operator.EdgeConfig) operator.EdgeWriter{operator.NewEdge[order]},
		Enumerator: src.Enumerator,
	})
}

func keyedNode[In, Out any](b *builder, like keyed[In, Out], parallelism int) int {
	key := codec.For[uint32]().Schema()
	d := stateDecl()
	states := []checkpoint.StateMeta{{Name: d.Name, Kind: d.Kind, Value: d.ValueSchema}}
	if like.ring != nil {
		d := alarmDecl()
		states = append(states, checkpoint.StateMeta{Name: d.Name, Kind: d.Kind})
	}
	return b.node(graph.Node{
		Name: like.name, Kind: "process", Parallelism: parallelism, Keyed: true, Stateful: true, Key: &key, KeyType: "uint32",
		States: states,
	}, operator.Spec{
		Make: func(outs [][]any) operator.Made {
			o := like
			o.parts, o.out = b.Parts, operator.NewOutput[Out](outs[0])
			return operator.Made{Op: &o, Entries: []operator.Entry{operator.NewEntry[In](&o)}}
		},
		Edge: []func(operator.EdgeConfig) operator.EdgeWriter{operator.NewEdge[Out]},
	})
}

func sinkNode[T any](b *builder, name string, parallelism int, to connector.TransactionalSink[T]) int {
	return b.node(graph.Node{
		Name: name, Kind: "sink", Parallelism: parallelism, Sink: &graph.SinkInfo{Kind: graph.SinkTransactional},
	}, operator.Spec{
		Make: func([][]any) operator.Made {
			return operator.NewSink(operator.SinkConfig[T]{Name: name, Writer: to.Writer})
		},
		Committer: to,
		Renewer:   to.(connector.Renewer),
	})
}

func hashBy[T any](key func(T) uint32) func(seed uint64) (func(T) uint64, error) {
	return func(seed uint64) (func(T) uint64, error) {
		hash, err := keyhash.For[uint32](seed)
		return func(v T) uint64 { return hash(key(v)) }, err
	}
}
