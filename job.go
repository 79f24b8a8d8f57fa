package staunch

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
)

// Job is a graph under construction. It collects faults instead of returning
// them one by one. It is built by one goroutine.
type Job struct {
	name     string
	defaults Options
	faults   []error
	nodes    []*node
	edges    []edge
	names    map[string]*node
	rate     int64 // of sources that set none; 0: no limit
}

// NewJob starts a graph. The name is the identity of the job's checkpoints.
func NewJob(name string) *Job {
	j := &Job{name: name, names: map[string]*node{}}
	if name == "" {
		j.fault("the job has no name")
	}
	return j
}

// Name returns the job's name.
func (j *Job) Name() string { return j.name }

// Defaults sets options that a run takes where it gives none itself.
func (j *Job) Defaults(o Options) { j.defaults = o }

// Err returns all faults of the graph in one error (errors.Join), or nil.
func (j *Job) Err() error {
	faults := slices.Clone(j.faults)
	if !slices.ContainsFunc(j.nodes, func(n *node) bool { return n.Sink != nil }) {
		faults = append(faults, errors.New("no sink: end at least one stream with To"))
	}
	for _, n := range j.nodes {
		if d := n.cfg.dead; d != nil && !n.reads(d.side) {
			faults = append(faults, fmt.Errorf("%s: nobody reads its dead letters: take them with SideOf(..., side %q)", n.label, d.side))
		}
	}
	return errors.Join(faults...)
}

func (j *Job) fault(format string, args ...any) {
	j.faults = append(j.faults, fmt.Errorf(format, args...))
}

// node is one operator under construction, with its types erased.
type node struct {
	graph.Node
	id    int
	label string // for faults: `operator "account"`, `map behind "orders"`
	cfg   config
	ports []*port // main, then sides; none for a sink
	sides bool    // user code may emit to any side

	make       func(name string, outs [][]any) operator.Made
	enumerator func(ctx context.Context, i connector.Instance) (connector.Enumerator, error)
	committer  connector.Committer
	fencer     connector.Fencer
	renewer    connector.Renewer
}

// port is an output of a node.
type port struct {
	side   string // empty: the main output
	typ    reflect.Type
	read   bool // an edge leaves from it
	check  func() error
	schema func() codec.Schema
	edge   func(operator.EdgeConfig) operator.EdgeWriter
	// emitter makes the emitting end of a side.
	emitter func(consumers []any) sideEmitter
}

// edge joins an output port with the only input port of a node.
type edge struct {
	from *node
	port int
	to   *node
	kind graph.EdgeKind
	hash any // Hash: func(seed uint64) (func(T) uint64, error)
}

// reads says whether an edge leaves from a side of n.
func (n *node) reads(side string) bool {
	return slices.ContainsFunc(n.ports, func(p *port) bool { return p.side == side && p.read })
}

// identity is the name of an operator that a checkpoint knows.
func (j *Job) identity(kind, name string, opts []Option) *node {
	label := fmt.Sprintf("%s %q", kind, name)
	if kind != "source" && kind != "sink" {
		label = fmt.Sprintf("operator %q", name)
	}
	n := &node{Node: graph.Node{Kind: kind, Name: name, Named: true}, label: label}
	if name == "" {
		j.fault("a %s has no name: its name is the identity of its state", kind)
	}
	j.add(n, opts)
	return n
}

// anonymous is an operator that keeps nothing and needs no name.
func (j *Job) anonymous(kind string, behind *node, opts []Option) *node {
	n := &node{Node: graph.Node{Kind: kind}, label: fmt.Sprintf("%s behind %s", kind, behind.label)}
	j.add(n, opts)
	return n
}

func (j *Job) add(n *node, opts []Option) {
	n.id = len(j.nodes)
	j.nodes = append(j.nodes, n)
	n.cfg = j.options(n.Kind, n.label, opts)
	if n.cfg.named != "" {
		n.Name = n.cfg.named
		n.label = fmt.Sprintf("operator %q", n.Name)
	}
	if n.Name != "" {
		if other := j.names[n.Name]; other != nil {
			j.fault("duplicate name %q: a %s and a %s", n.Name, other.Kind, n.Kind)
		} else {
			j.names[n.Name] = n
		}
	}
	n.Parallelism, n.NoChain, n.Former = n.cfg.parallelism, n.cfg.noChain, n.cfg.former
	if slices.Contains(n.cfg.given, "Parallelism") && n.Parallelism < 1 {
		j.fault("%s: Parallelism(%d): at least 1 is needed", n.label, n.Parallelism)
		n.Parallelism = 1
	}
	if n.Parallelism > maxParallelism {
		j.fault("%s: Parallelism(%d): at most %d are possible in one process", n.label, n.Parallelism, maxParallelism)
		n.Parallelism = 1
	}
}

// addPort gives n an output of type T.
func addPort[T any](n *node, side string) *port {
	p := &port{
		side: side, typ: reflect.TypeFor[T](), check: codec.Check[T],
		schema:  func() codec.Schema { return codec.For[T]().Schema() },
		edge:    operator.NewEdge[T],
		emitter: newSide[T](side),
	}
	n.ports = append(n.ports, p)
	if side != "" {
		n.Sides = append(n.Sides, side)
	}
	return p
}

// mainPort gives n its main output, with the codec that an option may set.
func mainPort[T any](j *Job, n *node) Stream[T] {
	p := addPort[T](n, "")
	j.edgeCodec(p, n.cfg, n.label)
	return Stream[T]{job: j, from: []origin{{node: n, kind: graph.Forward}}}
}

// edgeCodec sets the codec of a port to that of an EdgeCodec option.
func (j *Job) edgeCodec(p *port, c config, label string) {
	e := c.edge
	if e == nil {
		return
	}
	if e.typ != p.typ {
		j.fault("%s: EdgeCodec is for %v, but the records are %v", label, e.typ, p.typ)
		return
	}
	p.check = func() error { return nil }
	p.schema = func() codec.Schema { return e.schema }
}

// connect makes s the input of n.
func connect[T any](s Stream[T], n *node) {
	j := s.job
	for _, o := range s.from {
		p := o.node.ports[o.port]
		if !p.read {
			p.read = true
			if err := p.check(); err != nil {
				j.fault("%s: records cannot leave it without loss; give it an EdgeCodec: %w", o.node.label, err)
			}
		}
		j.edges = append(j.edges, edge{from: o.node, port: o.port, to: n, kind: o.kind, hash: o.hash})
	}
}

// logical is the graph as the planner takes it.
func (j *Job) logical() graph.Graph {
	g := graph.Graph{Job: j.name}
	for _, n := range j.nodes {
		g.Nodes = append(g.Nodes, n.Node)
	}
	for _, e := range j.edges {
		g.Edges = append(g.Edges, graph.Edge{From: e.from.id, Port: e.port, To: e.to.id, Kind: e.kind})
	}
	return g
}

// specs are the operators by node, as the runtime takes them.
func (j *Job) specs(p *graph.Plan) []operator.Spec {
	specs := make([]operator.Spec, len(j.nodes))
	for i, n := range j.nodes {
		planned := &p.Graph.Nodes[i]
		s := operator.Spec{
			Meta: checkpoint.OperatorMeta{
				Name: planned.Name, Kind: n.Kind, Vertex: p.Vertices[p.VertexOf[i]].Name,
				Parallelism: planned.Parallelism, Key: n.Key, States: n.States,
			},
			Make:       func(outs [][]any) operator.Made { return n.make(planned.Name, outs) },
			Enumerator: n.enumerator, Assign: n.cfg.assign,
			Committer: n.committer, Fencer: n.fencer, Renewer: n.renewer,
		}
		for _, port := range n.ports {
			s.Edge = append(s.Edge, port.edge)
			s.EdgeSchema = append(s.EdgeSchema, port.recordSchema())
		}
		specs[i] = s
	}
	return specs
}

// recordSchema describes what leaves by p; a port that nobody reads was not checked
// and may have a type without a codec.
func (p *port) recordSchema() (s codec.Schema) {
	if p.read {
		s = p.schema()
	}
	return s
}

// edgeHashes are the hash functions by edge.
func (j *Job) edgeHashes() []any {
	hs := make([]any, len(j.edges))
	for i, e := range j.edges {
		hs[i] = e.hash
	}
	return hs
}
