// Package graph turns the logical graph of a job into its physical plan and
// says what the plan guarantees end to end. It is pure: no I/O, no clock.
package graph

import (
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Graph is the logical graph: what the user wrote.
type Graph struct {
	Job   string
	Nodes []Node // a node's id is its index
	Edges []Edge
}

// Node is one operator.
type Node struct {
	Name        string
	Named       bool   // Name is the identity of state, not only for display
	Kind        string // "source", "map", "filter", "process", "count", "sink", ...
	Parallelism int    // 0: the job's
	NoChain     bool
	Keyed       bool // has keyed state or takes records by key
	Stateful    bool
	Key         *codec.Schema // of Keyed
	KeyType     string        // as Go writes it, to show
	States      []checkpoint.StateMeta
	Former      []string
	Properties  Properties
	Emits       Emission
	Source      *SourceInfo
	Sink        *SinkInfo
	Sides       []string // names of output ports 1..n
}

// Properties are promises of an operator's code.
type Properties uint8

const (
	Absorbing        Properties = 1 << iota // an input already in the state changes nothing and emits nothing
	Reemits                                 // with Absorbing: such an input may emit again what was emitted before
	Nondeterministic                        // a replay may emit something else
)

// Emission says when an operator emits, for the analysis of AtMostOnce.
type Emission uint8

const (
	EmitsOnRecord  Emission = iota // only for the record in hand
	EmitsFromState                 // also what it held back: timers, windows, buffers
)

// SourceInfo is what the plan knows of a source.
type SourceInfo struct {
	Replayable  bool
	Bounded     bool
	System, Why string
}

// SinkInfo is what the plan knows of a sink.
type SinkInfo struct {
	Kind               SinkKind
	Key                []string
	Fenced             bool
	TransactionTimeout time.Duration
	Readers            string
	System, Why        string
}

// SinkKind mirrors connector.SinkKind.
type SinkKind uint8

const (
	SinkAtLeastOnce SinkKind = iota
	SinkIdempotent
	SinkTransactional
)

// EdgeKind is how an edge distributes records over the receiving subtasks.
type EdgeKind uint8

const (
	Forward   EdgeKind = iota + 1 // subtask i to subtask i
	Hash                          // by key hash
	Rebalance                     // in turn
	Broadcast                     // to all
)

func (k EdgeKind) String() string {
	switch k {
	case Forward:
		return "forward"
	case Hash:
		return "hash"
	case Rebalance:
		return "rebalance"
	case Broadcast:
		return "broadcast"
	}
	return "unknown"
}

// Edge connects an output port of a node with an input port of another.
type Edge struct {
	From, Port int // node, output port: 0 main, then sides
	To, ToPort int // node, input port
	Kind       EdgeKind
}

// Plan is the physical plan.
type Plan struct {
	Graph    *Graph
	Vertices []Vertex   // in topological order
	VertexOf []int      // by node
	Chained  []bool     // by edge: a direct call inside a vertex
	Kinds    []EdgeKind // by edge: as planned (a forward edge between unequal parallelisms is a rebalance)
}

// Vertex is a chain of operators that run in one subtask. Only its head takes
// records from channels.
type Vertex struct {
	Name        string // of the head
	Nodes       []int  // head first, in topological order
	Parallelism int
	In          []int // edges that come from other vertices, in order
	Out         []int // edges that go to other vertices, in order
}
