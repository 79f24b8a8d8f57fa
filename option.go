package staunch

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

// Option changes one operator. One that does not apply to the operator it is
// given to is a fault of the graph.
type Option interface{ apply(*config) }

// config is what the options of one operator say.
type config struct {
	given       []string // the options, in order
	faults      []error
	named       string
	former      []string
	parallelism int
	noChain     bool
	dead        *deadLetter
	forget      time.Duration
	edge        *edgeCodec
	rate        int64
	assign      func(s []connector.Split, parallelism int) []int
}

type deadLetter struct {
	side   string
	typ    reflect.Type // T, of the record that failed
	failed reflect.Type // Failed[T]
}

type edgeCodec struct {
	typ    reflect.Type
	schema codec.Schema
}

type option struct {
	name string
	set  func(*config)
}

func (o option) apply(c *config) {
	c.given = append(c.given, o.name)
	o.set(c)
}

func (c *config) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// applies lists the operators of each option by kind. What is not listed here
// is a fault, so that an option is never silently without effect.
var applies = map[string][]string{
	"Named":       {"map", "filter", "trymap", "flatmap", "flatmapseq"},
	"FormerNames": {"source", "sink", "process", "count", "reduce", "aggregate", "distinct", "latest"},
	"Parallelism": {"source", "sink", "map", "filter", "trymap", "flatmap", "flatmapseq", "process", "count", "reduce", "aggregate", "distinct", "latest"},
	"NoChain":     {"source", "sink", "map", "filter", "trymap", "flatmap", "flatmapseq", "process", "count", "reduce", "aggregate", "distinct", "latest"},
	"DeadLetter":  {"source", "trymap", "flatmap"},
	"Forget":      {"aggregate", "distinct", "latest"},
	"EdgeCodec":   {"source", "map", "filter", "trymap", "flatmap", "flatmapseq", "process", "count", "reduce", "aggregate", "distinct", "latest", "KeyBy", "Rebalance"},
	"Rate":        {"source"},
	"Assign":      {"source"},
}

// options reads the options of an operator and adds their faults to the job's.
func (j *Job) options(kind, label string, opts []Option) (c config) {
	for i, o := range opts {
		if o == nil {
			j.fault("%s: option %d is nil", label, i+1)
			continue
		}
		o.apply(&c)
	}
	for _, name := range c.given {
		if !slices.Contains(applies[name], kind) {
			j.fault("%s: option %s does not apply to a %s; it is for %s", label, name, kind, strings.Join(applies[name], ", "))
		}
	}
	for _, err := range c.faults {
		j.fault("%s: %w", label, err)
	}
	return c
}

// Named names an operator that needs no name, for the plan and the metrics.
func Named(name string) Option {
	return option{"Named", func(c *config) {
		if name == "" {
			c.fault("Named with an empty name")
		}
		c.named = name
	}}
}

// FormerNames are names under which older checkpoints hold this operator.
func FormerNames(names ...string) Option {
	return option{"FormerNames", func(c *config) {
		if len(names) == 0 || slices.Contains(names, "") {
			c.fault("FormerNames with an empty name")
		}
		c.former = append(c.former, names...)
	}}
}

// Parallelism sets the number of subtasks of this operator: 1 to 1024.
func Parallelism(n int) Option { return option{"Parallelism", func(c *config) { c.parallelism = n }} }

// NoChain keeps the operator on a goroutine of its own.
func NoChain() Option { return option{"NoChain", func(c *config) { c.noChain = true }} }

// DeadLetter sends records for which the function fails to side. For TryMap,
// FlatMap and sources: operators that have not changed state when they fail.
// From a source come what its reader could not decode, as bytes.
func DeadLetter[T any](side Side[Failed[T]]) Option {
	return option{"DeadLetter", func(c *config) {
		if side.name == "" {
			c.fault("DeadLetter with a side that has no name")
		}
		c.dead = &deadLetter{side: side.name, typ: reflect.TypeFor[T](), failed: reflect.TypeFor[Failed[T]]()}
	}}
}

// Forget drops what is kept of a key d after its last write, by processing
// time (Distinct, Latest, Aggregate).
func Forget(d time.Duration) Option {
	return option{"Forget", func(c *config) {
		if d <= 0 {
			c.fault("Forget(%v): a positive duration is needed", d)
		}
		c.forget = d
	}}
}

// EdgeCodec encodes records that leave the process with c instead of
// codec.For.
func EdgeCodec[T any](c codec.Codec[T]) Option {
	return option{"EdgeCodec", func(cfg *config) {
		if c == nil {
			cfg.fault("EdgeCodec is nil")
			return
		}
		cfg.edge = &edgeCodec{typ: reflect.TypeFor[T](), schema: c.Schema()}
	}}
}

// Rate limits a source to perSecond records a second, all its subtasks
// together. It holds from the moment a run begins: nothing is caught up.
func Rate(perSecond int64) Option {
	return option{"Rate", func(c *config) {
		if perSecond < 0 {
			c.fault("Rate(%d): a rate is not negative", perSecond)
		}
		c.rate = perSecond
	}}
}

// Assign chooses the subtask of each split of a source, in place of the
// engine's assignment by weight. f gets the new splits and the source's
// parallelism, and returns a subtask for each.
func Assign(f func(s []connector.Split, parallelism int) []int) Option {
	return option{"Assign", func(c *config) {
		if f == nil {
			c.fault("Assign is nil")
		}
		c.assign = f
	}}
}
