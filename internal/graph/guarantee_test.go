package graph

import (
	"strings"
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// pipeline is a source, a keyed operator and a sink.
func pipeline(change func(source, op, sink *Node)) Graph {
	g := Graph{
		Job:   "test",
		Nodes: []Node{src("in"), keyed("op"), sink("out", SinkTransactional)},
		Edges: []Edge{{From: 0, To: 1, Kind: Hash}, forward(1, 2)},
	}
	change(&g.Nodes[0], &g.Nodes[1], &g.Nodes[2])
	return g
}

func TestGuarantee(t *testing.T) {
	upsert := func(n *Node, fenced bool) {
		n.Sink.Kind, n.Sink.Key, n.Sink.Fenced = SinkIdempotent, []string{"id"}, fenced
	}
	for _, tt := range []struct {
		name    string
		mode    checkpoint.Mode
		change  func(source, op, sink *Node)
		want    Guarantee
		weakest string // operator
		says    string
		except  string
	}{
		{"all holds", checkpoint.ExactlyOnce, func(_, _, _ *Node) {}, ExactlyOnce, "in", "replayable", ""},
		{"source cannot be read again", checkpoint.ExactlyOnce, func(s, _, _ *Node) {
			s.Source.Replayable, s.Source.Why = false, "a socket has no past"
		}, AtMostOnce, "in", "cannot be read again, since a socket has no past", ""},
		{"plain sink", checkpoint.ExactlyOnce, func(_, _, s *Node) {
			s.Sink.Kind, s.Sink.Why = SinkAtLeastOnce, "what is written cannot be taken back"
		}, AtLeastOnce, "out", "since what is written cannot be taken back", ""},
		{"neither", checkpoint.ExactlyOnce, func(i, _, o *Node) {
			i.Source.Replayable, o.Sink.Kind = false, SinkAtLeastOnce
		}, NoGuarantee, "in", "cannot be read again", ""},
		{"fenced upsert", checkpoint.ExactlyOnce, func(_, _, s *Node) { upsert(s, true) }, ExactlyOnce, "in", "", ""},
		{"upsert without a fence", checkpoint.ExactlyOnce, func(_, _, s *Node) { upsert(s, false) }, ExactlyOnce, "out", "not fenced", "zombies"},
		{"upsert of what a replay may change", checkpoint.ExactlyOnce, func(_, op, s *Node) {
			upsert(s, true)
			op.Properties = Nondeterministic
		}, AtLeastOnce, "out", `"op" is nondeterministic`, ""},
		{"transaction of what a replay may change", checkpoint.ExactlyOnce, func(_, op, _ *Node) {
			op.Properties = Nondeterministic
		}, ExactlyOnce, "in", "", ""},
		{"upsert by several writers a key", checkpoint.ExactlyOnce, func(_, op, s *Node) {
			upsert(s, true)
			s.Parallelism = 5
		}, AtLeastOnce, "out", `several writers (rebalance edge from "op")`, ""},
		{"upsert by one writer", checkpoint.ExactlyOnce, func(_, _, s *Node) {
			upsert(s, true)
			s.Parallelism = 1
		}, ExactlyOnce, "in", "", ""},
		{"transactions that expire", checkpoint.ExactlyOnce, func(_, _, s *Node) {
			s.Sink.TransactionTimeout = time.Minute
		}, ExactlyOnce, "out", "transactional", "outages longer than 1m0s"},

		{"at-least-once with a ledger", checkpoint.AtLeastOnce, func(_, _, _ *Node) {}, AtLeastOnce, "out", "out may repeat lines", ""},
		{"at-least-once from what cannot be read again", checkpoint.AtLeastOnce, func(s, _, _ *Node) { s.Source.Replayable = false }, NoGuarantee, "in", "", ""},
		{"at-least-once absorbed for a while", checkpoint.AtLeastOnce, func(_, op, _ *Node) {
			op.Properties = Absorbing
			op.States = []checkpoint.StateMeta{{Name: "seen", TTL: int64(24 * time.Hour)}}
		}, AtLeastOnce, "out", "", ""},

		{"at-most-once with transactions", checkpoint.AtMostOnce, func(_, op, _ *Node) { op.Emits = EmitsFromState }, AtMostOnce, "in", "reservation", ""},
		{"at-most-once from state into a plain sink", checkpoint.AtMostOnce, func(_, op, s *Node) {
			op.Emits, s.Sink.Kind = EmitsFromState, SinkAtLeastOnce
		}, NoGuarantee, "out", `"op" emits from its state`, ""},
		{"at-most-once into a plain sink", checkpoint.AtMostOnce, func(_, _, s *Node) { s.Sink.Kind = SinkAtLeastOnce },
			AtMostOnce, "out", "no operator before it emits from restored state", "writes that the sink itself repeats"},
		{"at-most-once from state into an upsert", checkpoint.AtMostOnce, func(_, op, s *Node) {
			op.Emits = EmitsFromState
			upsert(s, true)
		}, AtMostOnce, "in", "", ""},
		{"at-most-once from state into an upsert that differs", checkpoint.AtMostOnce, func(_, op, s *Node) {
			op.Emits, op.Properties = EmitsFromState, Nondeterministic
			upsert(s, true)
		}, NoGuarantee, "out", "emits from its state", ""},
		{"at-most-once needs no replay", checkpoint.AtMostOnce, func(s, _, _ *Node) { s.Source.Replayable = false }, AtMostOnce, "in", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, links := Analyze(compile(t, pipeline(tt.change), 2), tt.mode)
			if got != tt.want {
				t.Errorf("delivers %v, want %v", got, tt.want)
			}
			if links[0].Operator != tt.weakest || !strings.Contains(links[0].Observed, tt.says) {
				t.Errorf("weakest link is %s: %s; want %s: %s", links[0].Operator, links[0].Observed, tt.weakest, tt.says)
			}
			var except []string
			for _, l := range links {
				if l.Except != "" {
					except = append(except, l.Except)
				}
			}
			if e := strings.Join(except, "; "); tt.except == "" && e != "" || !strings.Contains(e, tt.except) {
				t.Errorf("except for %q, want %q", e, tt.except)
			}
		})
	}
}

func TestUpsertBehindItsKeyHasOneWriter(t *testing.T) {
	// Rebalanced on the way, but brought together by a hash edge before the sink.
	g := Graph{Job: "test",
		Nodes: []Node{src("in"), {Kind: "map"}, sink("out", SinkIdempotent)},
		Edges: []Edge{{From: 0, To: 1, Kind: Rebalance}, {From: 1, To: 2, Kind: Hash}}}
	g.Nodes[2].Sink.Key, g.Nodes[2].Sink.Fenced = []string{"id"}, true
	if got, links := Analyze(compile(t, g, 2), checkpoint.ExactlyOnce); got != ExactlyOnce {
		t.Errorf("got %v: %+v", got, links[0])
	}
	g.Edges[1].Kind = Forward
	if got, _ := Analyze(compile(t, g, 2), checkpoint.ExactlyOnce); got != AtLeastOnce {
		t.Errorf("with a forward edge: got %v", got)
	}
}

func TestGuaranteesCombine(t *testing.T) {
	for _, tt := range []struct{ a, b, want Guarantee }{
		{ExactlyOnce, ExactlyOnce, ExactlyOnce},
		{ExactlyOnce, AtLeastOnce, AtLeastOnce},
		{AtMostOnce, ExactlyOnce, AtMostOnce},
		{AtMostOnce, AtLeastOnce, NoGuarantee},
		{NoGuarantee, ExactlyOnce, NoGuarantee},
	} {
		if got := tt.a.and(tt.b); got != tt.want {
			t.Errorf("%v and %v: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}
