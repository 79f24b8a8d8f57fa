package graph

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Guarantee is what a job delivers end to end.
type Guarantee uint8

const (
	NoGuarantee Guarantee = iota
	ExactlyOnce           // nothing lost, nothing counted twice
	AtLeastOnce           // nothing lost
	AtMostOnce            // nothing counted twice
)

func (g Guarantee) String() string {
	switch g {
	case ExactlyOnce:
		return "exactly-once"
	case AtLeastOnce:
		return "at-least-once"
	case AtMostOnce:
		return "at-most-once"
	}
	return "none"
}

// keepsAll and keepsOnce take a guarantee apart: at-least-once and at-most-once
// are not ordered, each has one half of exactly-once.
func (g Guarantee) keepsAll() bool  { return g == ExactlyOnce || g == AtLeastOnce }
func (g Guarantee) keepsOnce() bool { return g == ExactlyOnce || g == AtMostOnce }

// and is what is left where both must hold.
func (g Guarantee) and(o Guarantee) Guarantee {
	return guarantee(g.keepsAll() && o.keepsAll(), g.keepsOnce() && o.keepsOnce())
}

func guarantee(all, once bool) Guarantee {
	switch {
	case all && once:
		return ExactlyOnce
	case all:
		return AtLeastOnce
	case once:
		return AtMostOnce
	}
	return NoGuarantee
}

// Link is one step of the analysis: what is needed, what is there, what to change.
type Link struct {
	Operator string
	Needed   string
	Observed string
	Fix      string    // empty: nothing to change
	Holds    Guarantee // what this link lets through
	Except   string    // under which the link does not hold: "zombies"
}

// Analyze says what the plan delivers end to end in a mode, and why. Links has
// one entry for each fact that matters, the weakest first: links[0] is the
// weakest link. A link with an Except lets its guarantee through but for what
// Except names.
func Analyze(p *Plan, mode checkpoint.Mode) (Guarantee, []Link) {
	a := analysis{p: p, g: p.Graph, mode: mode}
	for i, n := range a.g.Nodes {
		switch {
		case n.Source != nil:
			a.source(n)
		case n.Sink != nil:
			a.sink(i, n)
		default:
			a.operator(n)
		}
	}
	delivered := ExactlyOnce
	for _, l := range a.links {
		delivered = delivered.and(l.Holds)
	}
	slices.SortStableFunc(a.links, func(x, y Link) int { return x.strength() - y.strength() })
	return delivered, a.links
}

// strength orders links for the reader: what breaks most comes first, then what
// holds with an exception. It says nothing else: the guarantees have no order.
func (l Link) strength() int {
	s := 0
	if l.Holds.keepsAll() {
		s += 2
	}
	if l.Holds.keepsOnce() {
		s += 2
	}
	if l.Except == "" {
		s++
	}
	return s
}

type analysis struct {
	p     *Plan
	g     *Graph
	mode  checkpoint.Mode
	links []Link
}

func (a *analysis) add(l Link) { a.links = append(a.links, l) }

// source: what is lost must be readable again. At most once promises not to
// read again, so nothing is asked there.
func (a *analysis) source(n Node) {
	l := Link{Operator: n.Name, Needed: "a source that can be read again from an offset", Holds: ExactlyOnce}
	switch {
	case a.mode == checkpoint.AtMostOnce:
		l.Needed = "offsets that are reserved before they are emitted"
		l.Observed = "after a crash reading goes on behind the reservation; what was reserved and not processed is lost"
		l.Fix = "mode exactly-once"
		l.Holds = AtMostOnce
	case n.Source.Replayable:
		l.Observed = "replayable" + of(n.Source.System)
	default:
		l.Observed = "cannot be read again" + of(n.Source.System) + because(n.Source.Why) + ": what came after the last checkpoint is lost in a crash"
		l.Fix = "put a replayable log or a file in front of it"
		l.Holds = AtMostOnce
	}
	a.add(l)
}

// operator: in between, only what an operator does under replays matters.
func (a *analysis) operator(n Node) {
	if a.mode != checkpoint.AtLeastOnce || n.Properties&Absorbing == 0 {
		return
	}
	l := Link{Operator: n.Name, Needed: "state that a repeated record does not change", Observed: "absorbs repeated records", Holds: ExactlyOnce}
	if n.Properties&Reemits != 0 {
		l.Observed += ", and emits for them again"
	}
	if ttl := shortestTTL(n.States); ttl > 0 {
		// A replay older than the TTL is new again.
		l.Observed += fmt.Sprintf(", for replays younger than %v", ttl)
	}
	a.add(l)
}

func shortestTTL(states []checkpoint.StateMeta) (d time.Duration) {
	for _, s := range states {
		if t := time.Duration(s.TTL); t > 0 && (d == 0 || t < d) {
			d = t
		}
	}
	return d
}

func (a *analysis) sink(i int, n Node) {
	switch a.mode {
	case checkpoint.AtLeastOnce:
		a.sinkAtLeastOnce(n)
	case checkpoint.AtMostOnce:
		a.sinkAtMostOnce(i, n)
	default:
		a.sinkExactlyOnce(i, n)
	}
}

// sinkExactlyOnce: the records between the last checkpoint and a crash are
// written again, so a sink must take them back or overwrite them.
func (a *analysis) sinkExactlyOnce(i int, n Node) {
	l := Link{Operator: n.Name, Needed: "output that becomes visible at commit, or overwrites itself", Holds: ExactlyOnce}
	system := of(n.Sink.System)
	switch n.Sink.Kind {
	case SinkTransactional:
		l.Observed = "transactional" + system
		if n.Sink.Readers != "" {
			l.Observed += "; readers must use " + n.Sink.Readers
		}
		if t := n.Sink.TransactionTimeout; t > 0 {
			l.Except = fmt.Sprintf("outages longer than %v, after which the system drops prepared transactions", t)
			l.Fix = "a transaction timeout longer than any outage"
		}
	case SinkIdempotent:
		a.idempotent(i, n, &l)
	default:
		l.Observed = "at-least-once" + system + because(n.Sink.Why) + ": what was written after the last checkpoint is written again"
		l.Fix = "a transactional sink, or an idempotent one with a key"
		l.Holds = AtLeastOnce
	}
	a.add(l)
}

// idempotent is exactly-once only if the rewritten rows have the same keys, one
// writer a key, and no older attempt that still writes. It is eventually exact:
// between a restart and the end of the replay readers see older values.
func (a *analysis) idempotent(i int, n Node, l *Link) {
	key := "a key"
	if len(n.Sink.Key) > 0 {
		key = strings.Join(n.Sink.Key, ", ")
	}
	l.Observed = "idempotent by " + key + of(n.Sink.System)
	if by := a.upstream(i, func(n Node) bool { return n.Properties&Nondeterministic != 0 }); by != "" {
		l.Observed += fmt.Sprintf(", but %q is nondeterministic: a replay may write other rows and leave the first ones", by)
		l.Fix = "a transactional sink, or a deterministic operator"
		l.Holds = AtLeastOnce
		return
	}
	if by := a.scattered(i); by != "" {
		l.Observed += fmt.Sprintf(", but records of one key reach several writers (rebalance edge from %q): the last write is not determined", by)
		l.Fix = "KeyBy the sink's key before it, or Parallelism(1)"
		l.Holds = AtLeastOnce
		return
	}
	if !n.Sink.Fenced {
		l.Observed += ", not fenced: an older process that still runs may overwrite a newer row"
		l.Except = "zombies"
		l.Fix = "a sink that checks a fence row in each write"
		return
	}
	l.Observed += ", fenced; rows go back after a restart until the replay has caught up"
}

// upstream returns the name of the first node before node i for which f holds.
func (a *analysis) upstream(i int, f func(Node) bool) string {
	before := make([]bool, len(a.g.Nodes))
	a.mark(i, before)
	for j, b := range before {
		if b && f(a.g.Nodes[j]) {
			return a.g.Nodes[j].Name
		}
	}
	return ""
}

func (a *analysis) mark(i int, before []bool) {
	for _, e := range a.g.Edges {
		if e.To == i && !before[e.From] {
			before[e.From] = true
			a.mark(e.From, before)
		}
	}
}

// scattered returns the node from which a rebalance edge leads to sink i
// without a hash edge behind it that would bring each key to one writer again.
func (a *analysis) scattered(i int) string {
	if a.g.Nodes[i].Parallelism == 1 {
		return ""
	}
	for j, e := range a.g.Edges {
		if e.To != i {
			continue
		}
		switch a.p.Kinds[j] {
		case Rebalance:
			return a.g.Nodes[e.From].Name
		case Forward:
			if by := a.scattered(e.From); by != "" {
				return by
			}
		}
	}
	return ""
}

// sinkAtLeastOnce: records behind a barrier count into the checkpoint before it
// and are read again after a restart, whatever the sink can do.
func (a *analysis) sinkAtLeastOnce(n Node) {
	l := Link{Operator: n.Name, Needed: "output that repeats nothing", Holds: AtLeastOnce, Fix: "mode exactly-once"}
	repeats := "may repeat records"
	switch n.Sink.Kind {
	case SinkTransactional:
		repeats = fmt.Sprintf("%s may repeat lines: records that overtook a barrier are in the checkpoint and are processed again after a restart", n.Name)
	case SinkIdempotent:
		repeats = fmt.Sprintf("%s may hold values into which a record was counted twice", n.Name)
	default:
		repeats = fmt.Sprintf("%s may repeat records%s", n.Name, because(n.Sink.Why))
	}
	l.Observed = n.Sink.Kind.String() + of(n.Sink.System) + "; " + repeats
	a.add(l)
}

// sinkAtMostOnce: no source record is read twice, but what an operator held
// back in its state is emitted again if it was emitted after the checkpoint.
func (a *analysis) sinkAtMostOnce(i int, n Node) {
	l := Link{Operator: n.Name, Needed: "output that repeats nothing", Holds: AtMostOnce}
	l.Observed = n.Sink.Kind.String() + of(n.Sink.System)
	if n.Sink.Kind == SinkTransactional {
		a.add(l)
		return
	}
	held := a.upstream(i, func(n Node) bool { return n.Emits == EmitsFromState })
	random := a.upstream(i, func(n Node) bool { return n.Properties&Nondeterministic != 0 })
	switch {
	case held == "":
		l.Observed += "; no operator before it emits from restored state"
		if n.Sink.Kind == SinkAtLeastOnce {
			l.Except = "writes that the sink itself repeats when their outcome is unknown"
		}
	case n.Sink.Kind == SinkIdempotent && random == "":
		l.Observed += fmt.Sprintf("; what %q emits again from its state overwrites itself", held)
	default:
		l.Observed += fmt.Sprintf("; %q emits from its state, and after a restart again what it had emitted since the checkpoint", held)
		l.Fix = "a transactional sink"
		l.Holds = NoGuarantee
	}
	a.add(l)
}

func (k SinkKind) String() string {
	switch k {
	case SinkIdempotent:
		return "idempotent"
	case SinkTransactional:
		return "transactional"
	}
	return "at-least-once"
}

func of(system string) string {
	if system == "" {
		return ""
	}
	return " (" + system + ")"
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ", since " + why
}
