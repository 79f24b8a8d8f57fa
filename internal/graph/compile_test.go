package graph

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func src(name string) Node {
	return Node{Name: name, Named: true, Kind: "source", Source: &SourceInfo{Replayable: true, Bounded: true}}
}

func sink(name string, kind SinkKind) Node {
	return Node{Name: name, Named: true, Kind: "sink", Sink: &SinkInfo{Kind: kind}}
}

func keyed(name string) Node {
	return Node{Name: name, Named: true, Kind: "process", Keyed: true, Stateful: true}
}

func forward(from, to int) Edge { return Edge{From: from, To: to, Kind: Forward} }

func compile(t *testing.T, g Graph, parallelism int) *Plan {
	t.Helper()
	if g.Job == "" {
		g.Job = "test"
	}
	p, err := Compile(g, parallelism)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// chains shows the vertices: "a+b | c", and the edges between them.
func chains(p *Plan) string {
	var vs []string
	for _, v := range p.Vertices {
		var ns []string
		for _, n := range v.Nodes {
			ns = append(ns, p.Graph.Nodes[n].Name)
		}
		vs = append(vs, fmt.Sprintf("%s x%d", strings.Join(ns, "+"), v.Parallelism))
	}
	s := strings.Join(vs, " | ")
	for i, e := range p.Graph.Edges {
		if !p.Chained[i] {
			s += fmt.Sprintf("; %s-%v-%s", p.Graph.Nodes[e.From].Name, p.Kinds[i], p.Graph.Nodes[e.To].Name)
		}
	}
	return s
}

func TestChaining(t *testing.T) {
	noChain := func(n Node) Node { n.NoChain = true; return n }
	at := func(n Node, parallelism int) Node { n.Parallelism = parallelism; return n }
	m := Node{Kind: "map"}
	for _, tt := range []struct {
		name string
		g    Graph
		p    int
		want string
	}{
		{"forward at equal parallelism",
			Graph{Nodes: []Node{src("a"), m, sink("s", SinkTransactional)}, Edges: []Edge{forward(0, 1), forward(1, 2)}},
			2, "a+map-1+s x2"},
		{"two consumers are a tree",
			Graph{Nodes: []Node{src("a"), sink("s", 0), sink("t", 0)}, Edges: []Edge{forward(0, 1), forward(0, 2)}},
			2, "a+s+t x2"},
		{"hash",
			Graph{Nodes: []Node{src("a"), keyed("k"), sink("s", 0)}, Edges: []Edge{{From: 0, To: 1, Kind: Hash}, forward(1, 2)}},
			2, "a x2 | k+s x2; a-hash-k"},
		{"hash between single subtasks saves the shuffle",
			Graph{Nodes: []Node{src("a"), keyed("k"), sink("s", 0)}, Edges: []Edge{{From: 0, To: 1, Kind: Hash}, forward(1, 2)}},
			1, "a+k+s x1"},
		{"hash between single subtasks, NoChain",
			Graph{Nodes: []Node{src("a"), noChain(keyed("k")), sink("s", 0)}, Edges: []Edge{{From: 0, To: 1, Kind: Hash}, forward(1, 2)}},
			1, "a x1 | k x1 | s x1; a-hash-k; k-forward-s"},
		{"hash from one to many",
			Graph{Nodes: []Node{at(src("a"), 1), keyed("k")}, Edges: []Edge{{From: 0, To: 1, Kind: Hash}}},
			3, "a x1 | k x3; a-hash-k"},
		{"forward between unequal parallelisms is a rebalance",
			Graph{Nodes: []Node{at(src("a"), 1), m, sink("s", 0)}, Edges: []Edge{forward(0, 1), forward(1, 2)}},
			2, "a x1 | map-1+s x2; a-rebalance-map-1"},
		{"rebalance is never chained",
			Graph{Nodes: []Node{src("a"), m}, Edges: []Edge{{From: 0, To: 1, Kind: Rebalance}}},
			1, "a x1 | map-1 x1; a-rebalance-map-1"},
		{"several inputs make a head",
			Graph{Nodes: []Node{src("a"), src("b"), m, sink("s", 0)}, Edges: []Edge{forward(0, 2), forward(1, 2), forward(2, 3)}},
			2, "a x2 | b x2 | map-1+s x2; a-forward-map-1; b-forward-map-1"},
		{"the same output twice makes a head too",
			Graph{Nodes: []Node{src("a"), m}, Edges: []Edge{forward(0, 1), forward(0, 1)}},
			2, "a x2 | map-1 x2; a-forward-map-1; a-forward-map-1"},
		{"a side output is chained",
			Graph{Nodes: []Node{src("a"), {Kind: "trymap", Sides: []string{"bad"}}, sink("s", 0), sink("t", 0)},
				Edges: []Edge{forward(0, 1), forward(1, 2), {From: 1, Port: 1, To: 3, Kind: Forward}}},
			2, "a+trymap-1+s+t x2"},
		{"edges may point back in the list",
			Graph{Nodes: []Node{sink("s", 0), src("a")}, Edges: []Edge{forward(1, 0)}},
			2, "a+s x2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := compile(t, tt.g, tt.p)
			if got := chains(p); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			checkPlan(t, p)
		})
	}
}

// checkPlan checks what every plan must hold.
func checkPlan(t *testing.T, p *Plan) {
	t.Helper()
	var nodes []int
	for v, vertex := range p.Vertices {
		for _, n := range vertex.Nodes {
			if p.VertexOf[n] != v {
				t.Errorf("node %d is in vertex %d, VertexOf says %d", n, v, p.VertexOf[n])
			}
			if p.Graph.Nodes[n].Parallelism != vertex.Parallelism {
				t.Errorf("node %d has another parallelism than its vertex", n)
			}
			nodes = append(nodes, n)
		}
		for _, e := range vertex.In {
			if p.Graph.Edges[e].To != vertex.Nodes[0] {
				t.Errorf("edge %d leads into vertex %d behind its head", e, v)
			}
		}
	}
	for _, e := range p.Graph.Edges {
		if slices.Index(nodes, e.From) >= slices.Index(nodes, e.To) {
			t.Errorf("edge from %d to %d points back", e.From, e.To)
		}
	}
	if len(nodes) != len(p.Graph.Nodes) {
		t.Errorf("%d of %d nodes are planned", len(nodes), len(p.Graph.Nodes))
	}
}

func TestNamesPassOverWhatTheUserTook(t *testing.T) {
	g := Graph{Nodes: []Node{src("map-2"), {Kind: "map"}, {Kind: "map"}, {Kind: "filter"}},
		Edges: []Edge{forward(0, 1), forward(1, 2), forward(2, 3)}}
	p := compile(t, g, 1)
	var names []string
	for _, n := range p.Graph.Nodes {
		names = append(names, n.Name)
	}
	if want := []string{"map-2", "map-1", "map-3", "filter-1"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	if g.Nodes[1].Name != "" {
		t.Error("Compile changed the graph it was given")
	}
	if q := compile(t, g, 1); !reflect.DeepEqual(p, q) {
		t.Error("the same graph gave two plans")
	}
}

func TestEveryFaultIsListed(t *testing.T) {
	_, err := Compile(Graph{
		Nodes: []Node{src("a"), src("a"), {Kind: "process", Stateful: true}, keyed("k"), sink("s", 0), {Kind: "map", Parallelism: -1}},
		Edges: []Edge{forward(0, 3), forward(4, 3), {From: 0, Port: 1, To: 4, Kind: Forward}, {From: 3, To: 4}, forward(3, 1), forward(3, 17)},
	}, 0)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"the job has no name",
		`parallelism 0 of job ""`,
		`duplicate name "a": source and source`,
		"operator 2 (process) has no name",
		`operator "map-1": parallelism -1`,
		`operator "k" is keyed, but its input from "a" is a forward edge`,
		`sink "s" has an output, to "k"`,
		`edge "a" -> "s" leaves by port 1 of 1`,
		`edge "k" -> "s" has no kind`,
		`source "a" has an input, from "k"`,
		"edge 5 joins operators 3 and 17 of 6",
		`operator "map-1" has no input`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
}

func TestCycleIsRefusedByName(t *testing.T) {
	_, err := Compile(Graph{Job: "j",
		Nodes: []Node{src("a"), {Kind: "map"}, {Kind: "map"}},
		Edges: []Edge{forward(0, 1), forward(1, 2), forward(2, 1)}}, 1)
	if err == nil || !strings.Contains(err.Error(), `cycle among ["map-1" "map-2"]`) {
		t.Errorf("got %v", err)
	}
}
