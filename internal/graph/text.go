package graph

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// String shows the chains, their operators in order, where each takes its
// records from and what it keeps.
func (p *Plan) String() string {
	// One table over all chains, so that their columns stand in line.
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, v := range p.Vertices {
		for _, n := range v.Nodes {
			node := &p.Graph.Nodes[n]
			fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", node.Name, node.Kind, strings.Join(p.inputs(n), ", "), strings.Join(node.details(), "; "))
		}
	}
	w.Flush()
	rows := strings.Split(table.String(), "\n")
	var b strings.Builder
	for _, v := range p.Vertices {
		fmt.Fprintf(&b, "chain %s x%d\n", v.Name, v.Parallelism)
		for range v.Nodes {
			b.WriteString(strings.TrimRight(rows[0], " ") + "\n")
			rows = rows[1:]
		}
	}
	return b.String()
}

// inputs shows the edges into node n: "<- orders hash", "<- parse.bad chained".
func (p *Plan) inputs(n int) (in []string) {
	for i, e := range p.Graph.Edges {
		if e.To != n {
			continue
		}
		from := p.Graph.Nodes[e.From].Name
		if e.Port > 0 {
			from += "." + p.Graph.Nodes[e.From].Sides[e.Port-1]
		}
		how := p.Kinds[i].String()
		if p.Kinds[i] != e.Kind {
			how += fmt.Sprintf(" (x%d to x%d)", p.Graph.Nodes[e.From].Parallelism, p.Graph.Nodes[n].Parallelism)
		}
		if p.Chained[i] {
			how = "chained"
		}
		in = append(in, fmt.Sprintf("<- %s %s", from, how))
	}
	return in
}

func (n *Node) details() (d []string) {
	if n.Source != nil {
		d = append(d, n.Source.describe())
	}
	if n.Sink != nil {
		d = append(d, n.Sink.describe())
	}
	if n.KeyType != "" {
		d = append(d, "key "+n.KeyType)
	}
	for _, s := range n.States {
		d = append(d, "state "+DescribeState(s))
	}
	if len(n.Former) > 0 {
		d = append(d, "formerly "+strings.Join(n.Former, ", "))
	}
	if p := n.Properties.String(); p != "" {
		d = append(d, p)
	}
	return d
}

func (s *SourceInfo) describe() string {
	words := []string{"replayable", "unbounded"}
	if !s.Replayable {
		words[0] = "not replayable"
	}
	if s.Bounded {
		words[1] = "bounded"
	}
	return strings.Join(words, ", ") + of(s.System)
}

func (s *SinkInfo) describe() string {
	d := s.Kind.String()
	if s.Kind == SinkIdempotent && len(s.Key) > 0 {
		d += " by " + strings.Join(s.Key, ", ")
	}
	return d + of(s.System)
}

// DescribeState shows a declared state: its name, layout and TTL.
func DescribeState(s checkpoint.StateMeta) string {
	d := s.Name + ": " + s.Kind.String()
	if s.TTL > 0 {
		d += fmt.Sprintf(", TTL %v", time.Duration(s.TTL))
	}
	if len(s.Former) > 0 {
		d += ", formerly " + strings.Join(s.Former, ", ")
	}
	return d
}

func (p Properties) String() string {
	var words []string
	if p&Absorbing != 0 {
		words = append(words, "absorbing")
	}
	if p&Reemits != 0 {
		words = append(words, "reemits")
	}
	if p&Nondeterministic != 0 {
		words = append(words, "nondeterministic")
	}
	return strings.Join(words, ", ")
}
