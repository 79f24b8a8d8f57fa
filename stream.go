package staunch

import (
	"fmt"
	"iter"
	"strings"

	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
)

// Stream is a stream of T in a Job. It is a small value; copy it freely and
// use it more than once.
type Stream[T any] struct {
	job  *Job
	from []origin // one, or those of a union
}

// origin is an output port, and how the edges from it place records.
type origin struct {
	node *node
	port int
	kind graph.EdgeKind
	hash any // Hash: func(seed uint64) (func(T) uint64, error)
}

// use panics for a zero Stream: there is no job to which a fault could be added.
func (s Stream[T]) use(by string) {
	if s.job == nil {
		panic(fmt.Sprintf("staunch: %s of a zero Stream: make streams with From", by))
	}
}

// behind labels an operator that has no name by where it stands.
func (s Stream[T]) behind() *node { return s.from[0].node }

func (s Stream[T]) label() string {
	var ls []string
	for _, o := range s.from {
		ls = append(ls, o.node.label)
	}
	return strings.Join(ls, " and ")
}

// placed returns s with its records placed in another way.
func (s Stream[T]) placed(kind graph.EdgeKind, hash any) Stream[T] {
	p := Stream[T]{job: s.job}
	for _, o := range s.from {
		p.from = append(p.from, origin{node: o.node, port: o.port, kind: kind, hash: hash})
	}
	return p
}

// recode gives the outputs behind s the codec of an EdgeCodec option.
func (s Stream[T]) recode(c config, label string) {
	for _, o := range s.from {
		s.job.edgeCodec(o.node.ports[o.port], c, label)
	}
}

// Union merges streams of one type.
func Union[T any](first Stream[T], more ...Stream[T]) Stream[T] {
	first.use("Union")
	u := Stream[T]{job: first.job, from: append([]origin(nil), first.from...)}
	for _, s := range more {
		s.use("Union")
		if s.job != first.job {
			first.job.fault("Union of %s with a stream of another job, behind %s of %q", first.label(), s.label(), s.job.name)
			continue
		}
		u.from = append(u.from, s.from...)
	}
	return u
}

// Rebalance deals records out in turn; use it after a skewed source.
func Rebalance[T any](s Stream[T], opts ...Option) Stream[T] {
	s.use("Rebalance")
	label := "Rebalance behind " + s.label()
	s.recode(s.job.options("Rebalance", label, opts), label)
	return s.placed(graph.Rebalance, nil)
}

// Map applies f to each record.
func Map[T, U any](s Stream[T], f func(T) U, opts ...Option) Stream[U] {
	s.use("Map")
	j := s.job
	n := j.anonymous("map", s.behind(), opts)
	if f == nil {
		j.fault("%s: the function is nil", n.label)
	}
	n.make = func(name string, outs [][]any) operator.Made { return operator.NewMap(name, f, outs[0]) }
	connect(s, n)
	return mainPort[U](j, n)
}

// Filter keeps the records for which keep is true.
func Filter[T any](s Stream[T], keep func(T) bool, opts ...Option) Stream[T] {
	s.use("Filter")
	j := s.job
	n := j.anonymous("filter", s.behind(), opts)
	if keep == nil {
		j.fault("%s: the function is nil", n.label)
	}
	n.make = func(name string, outs [][]any) operator.Made { return operator.NewFilter(name, keep, outs[0]) }
	connect(s, n)
	return mainPort[T](j, n)
}

// TryMap applies f; an error fails the job, or goes to DeadLetter.
func TryMap[T, U any](s Stream[T], f func(T) (U, error), opts ...Option) Stream[U] {
	s.use("TryMap")
	n := s.job.anonymous("trymap", s.behind(), opts)
	if f == nil {
		s.job.fault("%s: the function is nil", n.label)
	}
	return flatMap(s, n, func(c *Ctx[U], in T) error {
		u, err := f(in)
		if err == nil {
			c.Emit(u)
		}
		return err
	})
}

// FlatMap emits any number of records for each.
func FlatMap[T, U any](s Stream[T], f func(c *Ctx[U], in T) error, opts ...Option) Stream[U] {
	s.use("FlatMap")
	n := s.job.anonymous("flatmap", s.behind(), opts)
	if f == nil {
		s.job.fault("%s: the function is nil", n.label)
	}
	n.sides = true
	return flatMap(s, n, f)
}

// FlatMapSeq emits what f yields: FlatMapSeq(lines, strings.FieldsSeq).
// FlatMap is faster.
func FlatMapSeq[T, U any](s Stream[T], f func(T) iter.Seq[U], opts ...Option) Stream[U] {
	s.use("FlatMapSeq")
	n := s.job.anonymous("flatmapseq", s.behind(), opts)
	if f == nil {
		s.job.fault("%s: the function is nil", n.label)
	}
	return flatMap(s, n, func(c *Ctx[U], in T) error {
		for u := range f(in) {
			c.Emit(u)
		}
		return nil
	})
}
