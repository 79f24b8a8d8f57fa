package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Restorable is what the plan knows of an operator that a checkpoint may hold.
type Restorable struct {
	Meta   checkpoint.OperatorMeta
	Former []string // names under which older checkpoints hold it
}

// Restorables are the operators of the plan, by node.
func (p *Plan) Restorables(metas []checkpoint.OperatorMeta) []Restorable {
	rs := make([]Restorable, len(metas))
	for i, m := range metas {
		rs[i] = Restorable{Meta: m, Former: p.Graph.Nodes[i].Former}
	}
	return rs
}

// Mapping says where each operator of the plan finds its state in a checkpoint.
type Mapping struct {
	Operators []MappedOperator // in the order of the plan's operators
	Dropped   []string         // operator, or operator/state, that DropState let go
}

// MappedOperator is one operator of a Mapping.
type MappedOperator struct {
	Name   string
	Old    int // index into Manifest.Operators; -1: starts empty
	States []MappedState
}

// MappedState is one declared state of a MappedOperator.
type MappedState struct {
	Name string
	Old  int // index into OperatorManifest.States; -1: starts empty
}

// CheckRestore maps the states of m to the operators of a plan, by name and
// former names. Everything the checkpoint holds must be claimed by an operator
// that can read it, or named in drop (an operator, or operator/state).
//
// What is claimed and can be read is kept even if drop names it: the same
// options serve the next restart too, which must not drop what has grown since.
// There is this one routine for every way to start. The error lists every
// fault; without one the mapping is complete.
func CheckRestore(plan []Restorable, m *checkpoint.Manifest, drop []string) (*Mapping, error) {
	r := restoring{m: m, drop: drop, claimed: make([]string, len(m.Operators))}
	mapping := &Mapping{}
	for _, op := range plan {
		mapping.Operators = append(mapping.Operators, r.operator(op))
	}
	r.unclaimed(plan, mapping)
	mapping.Dropped = r.dropped
	return mapping, errors.Join(r.faults...)
}

// CheckDrops looks at the names that a start may drop: one that the checkpoint
// does not hold is an error, which lists what could be dropped; one that the plan
// claims and can read is returned as kept. It is for the first attempt of a
// start: a later one restores what the first has left after dropping.
func CheckDrops(plan []Restorable, m *checkpoint.Manifest, drop []string) (kept []string, err error) {
	var held []string
	for _, old := range m.Operators {
		if holds(&old) != "" {
			held = append(held, old.Name)
		}
		for _, s := range old.States {
			held = append(held, old.Name+"/"+s.Name)
		}
	}
	// Were all of it named, this is what would go.
	all, _ := CheckRestore(plan, m, held)
	could := "nothing can be dropped: the job claims all of it"
	if len(all.Dropped) > 0 {
		could = "what can be dropped is " + strings.Join(all.Dropped, ", ")
	}
	var errs []error
	for _, name := range drop {
		gone := func(d string) bool { return name == d || strings.HasPrefix(name, d+"/") }
		switch {
		case !slices.Contains(held, name):
			errs = append(errs, fmt.Errorf("drop state: checkpoint %d holds nothing of the name %q; %s", m.ID, name, could))
		case !slices.ContainsFunc(all.Dropped, gone):
			kept = append(kept, name)
		}
	}
	return kept, errors.Join(errs...)
}

type restoring struct {
	m       *checkpoint.Manifest
	drop    []string
	claimed []string // by old operator: who claims it
	dropped []string
	faults  []error
}

func (r *restoring) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

// drops says whether the user lets name go.
func (r *restoring) drops(name string) bool {
	if !slices.Contains(r.drop, name) {
		return false
	}
	if !slices.Contains(r.dropped, name) {
		r.dropped = append(r.dropped, name)
	}
	return true
}

func (r *restoring) operator(op Restorable) MappedOperator {
	mapped := MappedOperator{Name: op.Meta.Name, Old: -1}
	for _, s := range op.Meta.States {
		mapped.States = append(mapped.States, MappedState{Name: s.Name, Old: -1})
	}
	i := r.find(op)
	if i < 0 {
		return mapped
	}
	old := &r.m.Operators[i]
	if r.claimed[i] != "" {
		r.fault("operators %q and %q both claim the state of %q in checkpoint %d", r.claimed[i], op.Meta.Name, old.Name, r.m.ID)
		return mapped
	}
	r.claimed[i] = op.Meta.Name
	before := len(r.faults)
	if a, b := role(old.Kind), role(op.Meta.Kind); a != b {
		r.fault("operator %q is of kind %s, in checkpoint %d of kind %s", op.Meta.Name, b, r.m.ID, a)
	} else {
		r.states(op, old, &mapped)
		mapped.Old = i
	}
	if len(r.faults) > before && r.drops(old.Name) {
		r.faults = r.faults[:before]
		mapped.Old = -1
		for i := range mapped.States {
			mapped.States[i].Old = -1
		}
	}
	return mapped
}

// find looks for op by its name, then by its former names: a name that is in
// use is never mistaken for an older one.
func (r *restoring) find(op Restorable) int {
	for _, name := range append([]string{op.Meta.Name}, op.Former...) {
		for i := range r.m.Operators {
			if r.m.Operators[i].Name == name {
				return i
			}
		}
	}
	return -1
}

// role is what an operator's part of a checkpoint is made of.
func role(kind string) string {
	switch kind {
	case "source", "sink":
		return kind
	}
	return "operator"
}

func (r *restoring) states(op Restorable, old *checkpoint.OperatorManifest, mapped *MappedOperator) {
	claimed := make([]string, len(old.States))
	for i, s := range op.Meta.States {
		j := findState(old.States, s)
		if j < 0 {
			continue
		}
		where := op.Meta.Name + "/" + s.Name
		if claimed[j] != "" {
			r.fault("states %q and %q of operator %q both claim %q in checkpoint %d", claimed[j], s.Name, op.Meta.Name, old.States[j].Name, r.m.ID)
			continue
		}
		claimed[j] = s.Name
		before := len(r.faults)
		if r.compatible(where, &old.States[j], s) {
			mapped.States[i].Old = j
		} else if r.drops(old.Name + "/" + old.States[j].Name) {
			r.faults = r.faults[:before]
		}
	}
	kept := false
	for j, s := range old.States {
		if claimed[j] != "" {
			kept = kept || slices.ContainsFunc(mapped.States, func(m MappedState) bool { return m.Old == j })
			continue
		}
		if r.drops(old.Name + "/" + s.Name) {
			continue
		}
		var fresh []string
		for i, d := range op.Meta.States {
			if mapped.States[i].Old < 0 {
				fresh = append(fresh, d.Name)
			}
		}
		r.fault("state %q of operator %q in checkpoint %d (%d entries) is declared by nobody%s; declare it, give its new name state.FormerNames(%q), or drop it with -drop-state %s/%s",
			s.Name, op.Meta.Name, r.m.ID, s.Entries, resembling(s.Name, fresh), s.Name, old.Name, s.Name)
	}
	if kept && old.Key != nil {
		if op.Meta.Key == nil {
			r.fault("operator %q is not keyed, in checkpoint %d it is", op.Meta.Name, r.m.ID)
		} else if err := codec.Compatible(*old.Key, *op.Meta.Key); err != nil {
			r.fault("key of operator %q cannot be read from checkpoint %d: %w", op.Meta.Name, r.m.ID, err)
		} else if old.Key.Fingerprint != op.Meta.Key.Fingerprint {
			// The hash is made of the key's bytes, so another encoding of the same
			// key would be looked for in another place.
			r.fault("key of operator %q is encoded in another way than in checkpoint %d: keys cannot change", op.Meta.Name, r.m.ID)
		}
	}
}

func findState(old []checkpoint.StateManifest, s checkpoint.StateMeta) int {
	for _, name := range append([]string{s.Name}, s.Former...) {
		for j := range old {
			if old[j].Name == name {
				return j
			}
		}
	}
	return -1
}

func (r *restoring) compatible(where string, old *checkpoint.StateManifest, s checkpoint.StateMeta) bool {
	ok := true
	if old.Kind != s.Kind {
		r.fault("state %s is a %s, in checkpoint %d it is a %s", where, s.Kind, r.m.ID, old.Kind)
		ok = false
	}
	for _, c := range []struct {
		what     string
		old, new *codec.Schema
	}{{"map key", old.Sub, s.Sub}, {"value", old.Value, s.Value}} {
		if c.old == nil || c.new == nil {
			continue
		}
		if err := codec.Compatible(*c.old, *c.new); err != nil {
			r.fault("%s of state %s cannot be read from checkpoint %d: %w", c.what, where, r.m.ID, err)
			ok = false
		}
	}
	return ok
}

// unclaimed refuses what no operator of the plan takes over, by name.
func (r *restoring) unclaimed(plan []Restorable, mapping *Mapping) {
	var fresh []string
	for i, op := range mapping.Operators {
		if op.Old < 0 && r.keeps(plan[i].Meta) {
			fresh = append(fresh, op.Name)
		}
	}
	for i, old := range r.m.Operators {
		what := holds(&old)
		if r.claimed[i] != "" || what == "" || r.drops(old.Name) {
			continue
		}
		// Every state dropped one by one is as good as the operator dropped.
		left := false
		for _, s := range old.States {
			left = !r.drops(old.Name+"/"+s.Name) || left
		}
		if len(old.States) > 0 && !left && old.Splits == nil && !pending(&old) {
			continue
		}
		r.fault("operator %q of checkpoint %d (%s) is in the job no more%s; give its new name FormerNames(%q), or drop its state with -drop-state %s",
			old.Name, r.m.ID, what, resembling(old.Name, fresh), old.Name, old.Name)
	}
}

// keeps says whether an operator would have state in a checkpoint.
func (r *restoring) keeps(m checkpoint.OperatorMeta) bool {
	return len(m.States) > 0 || role(m.Kind) != "operator"
}

func pending(old *checkpoint.OperatorManifest) bool {
	return old.Committables != nil && old.Committables.Entries > 0
}

// holds says in words what a checkpoint keeps of an operator, empty if nothing.
// A declared state counts even when it has no entries: whether a job starts
// must not depend on what came in.
func holds(old *checkpoint.OperatorManifest) string {
	var parts []string
	for _, s := range old.States {
		parts = append(parts, fmt.Sprintf("state %q with %d entries", s.Name, s.Entries))
	}
	for _, l := range old.Lists {
		parts = append(parts, fmt.Sprintf("operator state %q", l.Name))
	}
	if old.Splits != nil {
		parts = append(parts, fmt.Sprintf("%d splits", old.Splits.Entries))
	}
	if pending(old) {
		parts = append(parts, fmt.Sprintf("%d committables that may not be visible yet", old.Committables.Entries))
	}
	return strings.Join(parts, ", ")
}

func resembling(name string, fresh []string) string {
	ns := near(name, fresh)
	if len(ns) == 0 {
		return ""
	}
	return fmt.Sprintf(" (new without state: %s)", strings.Join(ns, ", "))
}
