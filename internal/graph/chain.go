package graph

// chain decides the kind of each edge as planned and which nodes run together
// in one subtask. A node is chained to the one before it if records can go over
// by a direct call and nothing else reaches it:
//
//  1. the edge is a forward edge between equal parallelisms, or a hash edge
//     between single subtasks (there is nothing to place, so the shuffle is saved);
//  2. it is the only edge into the node: a gate reads channels, so a node with
//     several inputs is the head of its chain;
//  3. neither end asked for a goroutine of its own.
func chain(g *Graph, order []int) *Plan {
	p := &Plan{
		Graph:    g,
		VertexOf: make([]int, len(g.Nodes)),
		Chained:  make([]bool, len(g.Edges)),
		Kinds:    make([]EdgeKind, len(g.Edges)),
	}
	into := make([]int, len(g.Nodes))
	for _, e := range g.Edges {
		into[e.To]++
	}
	for i, e := range g.Edges {
		from, to := &g.Nodes[e.From], &g.Nodes[e.To]
		p.Kinds[i] = e.Kind
		if e.Kind == Forward && from.Parallelism != to.Parallelism {
			p.Kinds[i] = Rebalance
		}
		direct := p.Kinds[i] == Forward || p.Kinds[i] == Hash && from.Parallelism == 1 && to.Parallelism == 1
		p.Chained[i] = direct && into[e.To] == 1 && !from.NoChain && !to.NoChain
	}

	for _, n := range order {
		v := -1
		for i, e := range g.Edges {
			if e.To == n && p.Chained[i] {
				v = p.VertexOf[e.From]
			}
		}
		if v < 0 {
			v = len(p.Vertices)
			p.Vertices = append(p.Vertices, Vertex{Name: g.Nodes[n].Name, Parallelism: g.Nodes[n].Parallelism})
		}
		p.VertexOf[n] = v
		p.Vertices[v].Nodes = append(p.Vertices[v].Nodes, n)
	}
	for i, e := range g.Edges {
		if !p.Chained[i] {
			from, to := &p.Vertices[p.VertexOf[e.From]], &p.Vertices[p.VertexOf[e.To]]
			from.Out = append(from.Out, i)
			to.In = append(to.In, i)
		}
	}
	return p
}
