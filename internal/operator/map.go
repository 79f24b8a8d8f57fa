package operator

import "github.com/staunchdev/staunch/internal/element"

// stateless is what a Map and a Filter have in common: a name, and the record
// that the user's function is looking at.
type stateless[T any] struct {
	Base
	name string
	in   *element.Run[T] // nil while the user's function does not run
	at   int
}

// Where implements Where.
func (s *stateless[T]) Where() (operator, record string) {
	if s.in == nil || s.at >= len(s.in.Values) {
		return s.name, ""
	}
	return s.name, "record " + Describe(s.in.Values[s.at])
}

type mapper[T, U any] struct {
	stateless[T]
	f   func(T) U
	out Output[U]
}

// NewMap returns an operator that turns each record into another one.
func NewMap[T, U any](name string, f func(T) U, outs []any) Made {
	m := &mapper[T, U]{stateless: stateless[T]{name: name}, f: f, out: NewOutput[U](outs)}
	return Made{Op: m, Entries: []Entry{NewEntry[T](m)}}
}

func (m *mapper[T, U]) Process(r *element.Run[T]) error {
	if cap(m.out.Run.Values) < len(r.Values) {
		m.out.Run.Values = make([]U, len(r.Values))
	}
	values := m.out.Run.Values[:len(r.Values)]
	m.in = r
	for i, v := range r.Values {
		m.at = i
		values[i] = m.f(v)
	}
	m.in = nil
	m.out.Run.Values = values
	// The time column is only read by who takes it, so it is passed on as it is.
	// Hashes are not: they belong to the old record's key.
	m.out.Run.Times = r.Times
	err := m.out.Flush()
	m.out.Run.Times = nil
	return err
}

func (m *mapper[T, U]) Watermark(t int64) error { return m.out.Watermark(t) }
