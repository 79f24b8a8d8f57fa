package staunch

import (
	"fmt"
	"reflect"

	"github.com/staunchdev/staunch/internal/graph"
)

// Side names an additional output of an operator.
type Side[T any] struct{ name string }

// NewSide makes a Side, usually a package variable.
func NewSide[T any](name string) Side[T] { return Side[T]{name} }

// Failed is a record that could not be processed, and why.
type Failed[T any] struct {
	Value T
	Err   string
	From  string // operator, or source position
}

// SideOf returns what the operator behind s emits to side.
func SideOf[T, U any](s Stream[U], side Side[T]) Stream[T] {
	s.use("SideOf")
	j := s.job
	n := s.from[0].node
	none := Stream[T]{job: j, from: []origin{{node: j.detached(addPort[T]), kind: graph.Forward}}}
	switch {
	case len(s.from) > 1:
		j.fault("SideOf(%q) of a union: take it from each stream, before the union", side.name)
		return none
	case side.name == "":
		j.fault("%s: SideOf with a side that has no name", n.label)
		return none
	case !n.sides && (n.cfg.dead == nil || n.cfg.dead.side != side.name):
		j.fault("%s emits nothing to side %q", n.label, side.name)
		return none
	}
	for i, p := range n.ports {
		if p.side != side.name {
			continue
		}
		if p.typ != reflect.TypeFor[T]() {
			j.fault("%s: side %q is read as %v and as %v", n.label, side.name, p.typ, reflect.TypeFor[T]())
			return none
		}
		return Stream[T]{job: j, from: []origin{{node: n, port: i, kind: graph.Forward}}}
	}
	if d := n.cfg.dead; d != nil && d.side == side.name && d.failed != reflect.TypeFor[T]() {
		j.fault("%s: its dead letters are Failed[%v], but side %q is read as %v", n.label, d.typ, side.name, reflect.TypeFor[T]())
		return none
	}
	addPort[T](n, side.name)
	return Stream[T]{job: j, from: []origin{{node: n, port: len(n.ports) - 1, kind: graph.Forward}}}
}

// detached makes a node that is in no graph, so that a faulty call can return a
// stream on which the program goes on building.
func (j *Job) detached(add func(n *node, side string) *port) *node {
	n := &node{label: "a faulty stream", sides: true}
	add(n, "")
	n.ports[0].read = true // its type is not worth another fault
	return n
}

// EmitSide emits v to a side output; it is dropped and counted if nothing
// reads that.
func EmitSide[T, U any](c *Ctx[U], side Side[T], v T) {
	for _, s := range c.sides {
		if s.name() != side.name {
			continue
		}
		e, ok := s.(*sideOutput[T])
		if !ok {
			panic(fmt.Errorf("side %q is read as another type than %v", side.name, reflect.TypeFor[T]()))
		}
		e.take(v, c.time)
		return
	}
	c.rt.Counter("dropped_" + side.name).Add(1)
}

// sideEmitter is a side output of a Ctx, with its type erased.
type sideEmitter interface {
	name() string
	emitted() int
	cut(n int)
	flush() error
	forward(watermark int64) error
}

type sideOutput[T any] struct {
	called string
	emitter[T]
}

func newSide[T any](name string) func(consumers []any) sideEmitter {
	return func(consumers []any) sideEmitter { return &sideOutput[T]{name, newEmitter[T](consumers)} }
}

func (s *sideOutput[T]) name() string { return s.called }

// take emits v, at an event time if the record in hand has one.
func (s *sideOutput[T]) take(v T, at int64) {
	if at == noTime {
		s.emit(v, at)
		return
	}
	s.emitAt(v, at)
}

func (s *sideOutput[T]) flush() error {
	err := s.emitter.flush()
	s.timed = false
	return err
}

func (s *sideOutput[T]) forward(t int64) error { return s.out.Watermark(t) }
