package checkpoint

import (
	"fmt"
	"math"
	"slices"
)

// Header is what a Manifest says of the job and of the checkpoint as a whole.
type Header struct {
	Job                 string
	ID, Parent          ID
	Lineage             uint64
	Epoch               Epoch
	Kind                Kind
	Mode                Mode
	HashID              uint8
	HashSeed            uint64
	Triggered, Finished int64
}

// Packed is what the shell packed into runs before Merge. References index into
// Objects.
type Packed struct {
	Objects    []Object
	Operators  map[string]PackedOperator
	Statistics *Ref
}

// PackedOperator holds an operator's runs that are not keyed state.
type PackedOperator struct {
	Lists        []ListManifest // in the order of Gathered.Lists
	Splits       *Ref
	Enumerator   *Ref
	Committables *Ref
}

// Merge makes the manifest of a checkpoint from the plan, the acks of all
// subtasks and what was packed of them. Its result depends on nothing else, not
// even on the order of the acks. An ack that does not fit the plan is an error,
// never left out: a manifest that lacks a part would restore a shorter state.
func Merge(h Header, plan []OperatorMeta, acks []Ack, packed Packed) (*Manifest, error) {
	m := &Manifest{
		Job: h.Job, ID: h.ID, Lineage: h.Lineage, Epoch: h.Epoch, Parent: h.Parent, Kind: h.Kind, Mode: h.Mode,
		HashID: h.HashID, HashSeed: h.HashSeed, Triggered: h.Triggered, Finished: h.Finished,
	}
	x := &merger{m: m, index: make(map[string]int)}
	for _, meta := range plan {
		parts, err := partsOf(meta, acks)
		if err == nil {
			err = x.operator(meta, parts, packed)
		}
		if err != nil {
			return nil, fmt.Errorf("manifest of checkpoint %d: operator %s: %w", h.ID, meta.Name, err)
		}
	}
	if err := unplanned(plan, acks); err != nil {
		return nil, fmt.Errorf("manifest of checkpoint %d: %w", h.ID, err)
	}
	var err error
	if m.Statistics, err = x.single(packed.Statistics, packed.Objects); err != nil {
		return nil, fmt.Errorf("manifest of checkpoint %d: statistics: %w", h.ID, err)
	}
	return m, nil
}

// part is one subtask's part of an operator.
type part struct {
	index int
	OperatorAck
}

// partsOf returns the parts of an operator in the order of the subtasks, which
// for a keyed one is that of the hashes.
func partsOf(meta OperatorMeta, acks []Ack) ([]part, error) {
	parts := make([]part, 0, meta.Parallelism)
	for _, a := range acks {
		if a.Subtask.Vertex != meta.Vertex {
			continue
		}
		for _, op := range a.Operators {
			if op.Operator == meta.Name {
				parts = append(parts, part{a.Subtask.Index, op})
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.index - b.index })
	for i, p := range parts {
		if p.index != i {
			return nil, fmt.Errorf("part %d is that of subtask %d", i, p.index)
		}
	}
	if len(parts) != meta.Parallelism {
		return nil, fmt.Errorf("%d parts at parallelism %d", len(parts), meta.Parallelism)
	}
	if meta.Key != nil {
		return parts, checkCover(parts)
	}
	return parts, nil
}

// checkCover says whether the ranges hold every hash once.
func checkCover(parts []part) error {
	next := uint64(0)
	for i, p := range parts {
		if p.Range.Lo != next || p.Range.Hi < p.Range.Lo {
			return fmt.Errorf("subtask %d has hashes %x to %x, expected from %x", p.index, p.Range.Lo, p.Range.Hi, next)
		}
		next = p.Range.Hi + 1
		if last := i == len(parts)-1; last != (next == 0) {
			return fmt.Errorf("subtask %d has hashes up to %x", p.index, p.Range.Hi)
		}
	}
	return nil
}

// unplanned finds parts of operators that the plan does not know.
func unplanned(plan []OperatorMeta, acks []Ack) error {
	known := make(map[[2]string]bool, len(plan))
	for _, meta := range plan {
		known[[2]string{meta.Vertex, meta.Name}] = true
	}
	for _, a := range acks {
		for _, op := range a.Operators {
			if !known[[2]string{a.Subtask.Vertex, op.Operator}] {
				return fmt.Errorf("subtask %v acknowledged operator %s, which is not in the plan", a.Subtask, op.Operator)
			}
		}
	}
	return nil
}

// merger collects the objects that references name, once each.
type merger struct {
	m     *Manifest
	index map[string]int
}

func (x *merger) operator(meta OperatorMeta, parts []part, packed Packed) error {
	o := OperatorManifest{Name: meta.Name, Kind: meta.Kind, Parallelism: meta.Parallelism, Key: meta.Key}
	for _, s := range meta.States {
		sm, err := x.state(s, parts)
		if err != nil {
			return fmt.Errorf("state %s: %w", s.Name, err)
		}
		o.States = append(o.States, sm)
	}
	for _, p := range parts {
		if err := undeclared(meta, p); err != nil {
			return err
		}
		r := p.Range
		if meta.Key == nil {
			r = HashRange{uint64(p.index), uint64(p.index)}
		}
		if p.Watermark != math.MinInt64 || p.Held != math.MinInt64 {
			o.Watermarks = append(o.Watermarks, RangeWatermark{r, p.Watermark, p.Held})
		}
		o.Records += p.Records
		if p.Finished {
			o.Finished = append(o.Finished, p.index)
		}
	}
	return x.packed(&o, packed.Operators[meta.Name], packed.Objects)
}

func undeclared(meta OperatorMeta, p part) error {
	for _, s := range p.States {
		if !slices.ContainsFunc(meta.States, func(d StateMeta) bool { return d.Name == s.State }) {
			return fmt.Errorf("subtask %d acknowledged state %s, which is not declared", p.index, s.State)
		}
	}
	return nil
}

func (x *merger) state(meta StateMeta, parts []part) (StateManifest, error) {
	sm := StateManifest{Name: meta.Name, Kind: meta.Kind, Sub: meta.Sub, Value: meta.Value, TTL: meta.TTL}
	for _, p := range parts {
		for _, s := range p.States {
			if s.State != meta.Name {
				continue
			}
			sm.Entries += s.Entries
			sm.Bytes += s.Bytes
			// The greatest one: what was dead for one subtask may have been left out.
			sm.TTLFloor = max(sm.TTLFloor, s.TTLFloor)
			for _, seg := range s.Segments {
				seg, err := x.segment(seg, s.Objects)
				if err != nil {
					return sm, fmt.Errorf("subtask %d: %w", p.index, err)
				}
				sm.Segments = append(sm.Segments, seg)
			}
		}
	}
	slices.SortStableFunc(sm.Segments, func(a, b Segment) int {
		switch {
		case a.Range.Lo < b.Range.Lo:
			return -1
		case a.Range.Lo > b.Range.Lo:
			return 1
		}
		return 0
	})
	for i := 1; i < len(sm.Segments); i++ {
		if a, b := sm.Segments[i-1].Range, sm.Segments[i].Range; a.Overlaps(b) {
			return sm, fmt.Errorf("segments %x to %x and %x to %x overlap", a.Lo, a.Hi, b.Lo, b.Hi)
		}
	}
	return sm, nil
}

func (x *merger) segment(s Segment, objects []Object) (Segment, error) {
	var err error
	if s.Base, err = x.ref(s.Base, objects); err != nil {
		return s, err
	}
	s.Deltas = slices.Clone(s.Deltas)
	for i := range s.Deltas {
		if s.Deltas[i], err = x.ref(s.Deltas[i], objects); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (x *merger) packed(o *OperatorManifest, p PackedOperator, objects []Object) error {
	var err error
	for _, l := range p.Lists {
		if l.Run, err = x.ref(l.Run, objects); err != nil {
			return fmt.Errorf("operator state %s: %w", l.Name, err)
		}
		o.Lists = append(o.Lists, l)
	}
	if o.Splits, err = x.single(p.Splits, objects); err != nil {
		return fmt.Errorf("splits: %w", err)
	}
	if o.Enumerator, err = x.single(p.Enumerator, objects); err != nil {
		return fmt.Errorf("enumerator: %w", err)
	}
	if o.Committables, err = x.single(p.Committables, objects); err != nil {
		return fmt.Errorf("committables: %w", err)
	}
	x.m.Operators = append(x.m.Operators, *o)
	return nil
}

func (x *merger) single(r *Ref, objects []Object) (*Ref, error) {
	if r == nil {
		return nil, nil
	}
	moved, err := x.ref(*r, objects)
	return &moved, err
}

// ref turns an index into objects into one into the manifest's.
func (x *merger) ref(r Ref, objects []Object) (Ref, error) {
	if r.Object == -1 {
		return r, nil
	}
	if r.Object < 0 || r.Object >= len(objects) {
		return r, fmt.Errorf("a run in object %d of %d", r.Object, len(objects))
	}
	o := objects[r.Object]
	i, ok := x.index[o.Name]
	if !ok {
		i = len(x.m.Objects)
		x.index[o.Name] = i
		x.m.Objects = append(x.m.Objects, o)
	}
	if x.m.Objects[i] != o {
		return r, fmt.Errorf("object %s has two descriptions: %d and %d bytes", o.Name, x.m.Objects[i].Size, o.Size)
	}
	r.Object = i
	return r, nil
}
