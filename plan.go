package staunch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/storage"
)

// Plan is what `plan` prints.
type Plan struct {
	Operators []PlannedOperator
	Delivered Guarantee // end to end
	Links     []Link    // why; the weakest first

	job     string
	options Options // complete
	graph   *graph.Plan
	links   []graph.Link
}

// PlannedOperator is one operator of a Plan.
type PlannedOperator struct {
	Name, Kind, Chain string
	Parallelism       int
	States            []string
	Properties        Properties
}

// Link is one step of the guarantee analysis: what is needed, what is there,
// and what to change.
type Link struct{ Operator, Needed, Observed, Fix string }

// Plan returns the physical plan with the guarantee analysis. Constructors have
// run when the graph was built; nothing here does I/O. The error lists all
// faults of the graph and of the options.
func (j *Job) Plan(o Options) (*Plan, error) {
	o = j.complete(o)
	faults := append([]error{j.Err()}, o.faults()...)
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("job %q: %w", j.name, err)
	}
	g, err := graph.Compile(j.logical(), o.Parallelism)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", j.name, err)
	}
	p := &Plan{job: j.name, options: o, graph: g}
	delivered, links := graph.Analyze(g, checkpoint.Mode(o.Mode))
	p.Delivered, p.links = Guarantee(delivered), links
	for _, l := range links {
		p.Links = append(p.Links, Link{Operator: l.Operator, Needed: l.Needed, Observed: l.Observed, Fix: l.Fix})
	}
	for i, n := range g.Graph.Nodes {
		op := PlannedOperator{
			Name: n.Name, Kind: n.Kind, Chain: g.Vertices[g.VertexOf[i]].Name,
			Parallelism: n.Parallelism, Properties: Properties(n.Properties),
		}
		for _, s := range n.States {
			op.States = append(op.States, graph.DescribeState(s))
		}
		p.Operators = append(p.Operators, op)
	}
	return p, nil
}

// maxParallelism bounds the subtasks of an operator. Two operators with a
// shuffle between them have the square of it in channels, so a slip of the pen
// would take all memory of the machine before the first record.
const maxParallelism = 1024

// faults are what of complete options cannot be carried out. An option that
// would silently have no effect is one of them.
func (o Options) faults() (fs []error) {
	fault := func(format string, args ...any) { fs = append(fs, fmt.Errorf("options: "+format, args...)) }
	if o.Mode > AtMostOnce {
		fault("unknown Mode %v", o.Mode)
	}
	if o.Require > AtMostOnce {
		fault("unknown Require %v", o.Require)
	}
	if o.Parallelism < 1 {
		fault("Parallelism is %d: at least 1 is needed", o.Parallelism)
	}
	if o.Parallelism > maxParallelism {
		fault("Parallelism is %d: at most %d are possible in one process", o.Parallelism, maxParallelism)
	}
	switch a := o.Checkpoint.Alignment; {
	case a == Unaligned:
		fault("Alignment Unaligned comes in a later version; take AlignAuto or Aligned")
	case a > Unaligned:
		fault("unknown Alignment %d", a)
	}
	if o.Checkpoint.Retain < 1 {
		fault("Checkpoint.Retain is %d: at least 1 is needed", o.Checkpoint.Retain)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Timeout", o.Checkpoint.Timeout}, {"MinPause", o.Checkpoint.MinPause}, {"AlignmentTimeout", o.Checkpoint.AlignmentTimeout}} {
		if d.value < 0 {
			fault("Checkpoint.%s is %v: it cannot be negative (0: the default)", d.name, d.value)
		}
	}
	switch b := o.State.Backend; {
	case b == Pebble:
		fault("state backend Pebble: this version has no such backend (it has: Heap)")
	case b > Pebble:
		fault("unknown state backend %d", b)
	case o.State.Dir != "" || o.State.CacheBytes != 0:
		fault("State.Dir and State.CacheBytes are for backend Pebble, which this version does not have")
	}
	if r := o.Restart; r.Delay < 0 || r.MaxDelay < 0 || r.Reset < 0 || r.Factor < 1 {
		fault("restart policy: durations are not negative and Factor is at least 1")
	}
	if o.Storage != "" {
		if err := storage.Check(o.Storage); err != nil {
			fault("%w", err)
		}
	}
	if _, err := o.from(); err != nil {
		fault("%w", err)
	}
	if o.From != "" && o.Fresh {
		fault("From %q and Fresh exclude each other", o.From)
	}
	for _, later := range []struct {
		name  string
		given bool
	}{{"NoClaim", o.NoClaim}, {"Listen", o.Listen != ""}, {"Control", o.Control != ""}} {
		if later.given {
			fault("%s comes in a later version", later.name)
		}
	}
	if slices.Contains(o.DropState, "") {
		fault("DropState has an empty name")
	}
	return fs
}

// from is the checkpoint to start from; 0: the latest.
func (o Options) from() (checkpoint.ID, error) {
	if o.From == "" {
		return 0, nil
	}
	id, err := strconv.ParseUint(o.From, 10, 64)
	if err != nil || id == 0 {
		return 0, fmt.Errorf("From %q is no checkpoint id", o.From)
	}
	return checkpoint.ID(id), nil
}

// require refuses a plan that does not deliver what is required.
func (p *Plan) require(want Guarantee) error {
	if p.Delivered.Satisfies(want) {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "job %q delivers %v, but %v is required:", p.job, p.Delivered, want)
	for _, l := range p.links {
		if Guarantee(l.Holds).Satisfies(want) {
			continue
		}
		fmt.Fprintf(&b, "\n  %s: %s", l.Operator, l.Observed)
		if l.Fix != "" {
			fmt.Fprintf(&b, "; change: %s", l.Fix)
		}
	}
	return errors.New(b.String())
}

// String shows the graph, its chains and what it guarantees end to end, with
// the weakest link first.
func (p *Plan) String() string {
	var b strings.Builder
	o := p.options
	fmt.Fprintf(&b, "job %s\n", p.job)
	fmt.Fprintf(&b, "mode %v, parallelism %d, checkpoints %s, %s\n\n", o.Mode, o.Parallelism, o.every(), o.alignment())
	b.WriteString(p.graph.String())
	fmt.Fprintf(&b, "\nend to end: %v%s\n", p.Delivered, exceptions(p.links))
	for i, l := range p.links {
		what := "holds"
		if l.Fix != "" {
			what = "also weak"
			if i == 0 {
				what = "weakest link"
			}
		}
		fmt.Fprintf(&b, "  %s: %s: %s\n", what, l.Operator, l.Observed)
		if l.Fix != "" {
			fmt.Fprintf(&b, "    needed: %s\n    change: %s\n", l.Needed, l.Fix)
		}
	}
	return b.String()
}

func (o Options) every() string {
	if o.Checkpoint.Interval < 0 {
		return "on demand"
	}
	return fmt.Sprintf("every %v", o.Checkpoint.Interval)
}

// alignment says how barriers are waited for.
func (o Options) alignment() string {
	switch {
	case o.Mode == AtLeastOnce:
		return "barriers are counted, no channel blocks"
	case o.Checkpoint.Alignment == AlignAuto:
		return "alignment auto (acts as aligned in this version)"
	}
	return "alignment " + o.Checkpoint.Alignment.String()
}

// exceptions are the cases in which the guarantee does not hold though every
// link lets it through.
func exceptions(links []graph.Link) string {
	var es []string
	for _, l := range links {
		if l.Except != "" && !slices.Contains(es, l.Except) {
			es = append(es, l.Except)
		}
	}
	if len(es) == 0 {
		return ""
	}
	return ", except for " + strings.Join(es, " and for ")
}
