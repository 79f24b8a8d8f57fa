package checkpoint

import (
	"fmt"
	"iter"
)

// Place says where in a manifest a run is named, for messages.
type Place struct {
	Operator string
	What     string // "state seen", "splits"
	Segment  int    // of a state, or the run of in-flight data; -1: there is one only
	Delta    int    // -1: the base
}

func (p Place) String() string {
	s := p.What
	if p.Operator != "" {
		s = fmt.Sprintf("operator %s, %s", p.Operator, p.What)
	}
	if p.Segment >= 0 {
		s += fmt.Sprintf(", segment %d", p.Segment)
	}
	if p.Delta >= 0 {
		s += fmt.Sprintf(", delta %d", p.Delta)
	}
	return s
}

// Refs yields every run that the manifest names. Whoever copies, verifies or
// rewrites references goes through it, so that a new place of the manifest
// cannot be forgotten in one of them.
func (m *Manifest) Refs() iter.Seq2[Place, *Ref] {
	return func(yield func(Place, *Ref) bool) {
		for i := range m.Operators {
			if !m.Operators[i].refs(yield) {
				return
			}
		}
		for i := range m.InFlight {
			f := &m.InFlight[i]
			what := fmt.Sprintf("in-flight data %v to %v", f.Channel[0], f.Channel[1])
			for j := range f.Runs {
				if !yield(Place{"", what, j, -1}, &f.Runs[j]) {
					return
				}
			}
		}
		if m.Statistics != nil {
			yield(Place{"", "statistics", -1, -1}, m.Statistics)
		}
	}
}

func (o *OperatorManifest) refs(yield func(Place, *Ref) bool) bool {
	for i := range o.States {
		s := &o.States[i]
		what := "state " + s.Name
		for j := range s.Segments {
			if !s.Segments[j].refs(Place{o.Name, what, j, -1}, yield) {
				return false
			}
		}
	}
	for i := range o.Lists {
		if !yield(Place{o.Name, "operator state " + o.Lists[i].Name, -1, -1}, &o.Lists[i].Run) {
			return false
		}
	}
	for _, r := range [...]struct {
		what string
		ref  *Ref
	}{{"splits", o.Splits}, {"enumerator", o.Enumerator}, {"committables", o.Committables}} {
		if r.ref != nil && !yield(Place{o.Name, r.what, -1, -1}, r.ref) {
			return false
		}
	}
	return true
}

func (s *Segment) refs(at Place, yield func(Place, *Ref) bool) bool {
	if !yield(at, &s.Base) {
		return false
	}
	for i := range s.Deltas {
		at.Delta = i
		if !yield(at, &s.Deltas[i]) {
			return false
		}
	}
	return true
}
