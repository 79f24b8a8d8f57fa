package codec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// IncompatibleError says why bytes of one schema cannot be read by another.
type IncompatibleError struct {
	Old, New Schema
	Diffs    []Difference // none if only format or version differ
}

// Difference is one field that stands in the way. Old or New is empty where the
// field is missing.
type Difference struct {
	Field    string // its path; empty for the value itself
	Old, New string // types
	Reason   string
}

func (e *IncompatibleError) Error() string {
	var b strings.Builder
	switch {
	case e.Old.Format != e.New.Format:
		fmt.Fprintf(&b, "incompatible schema: written as %s, now %s", e.Old.Format, e.New.Format)
	case len(e.Diffs) == 0:
		fmt.Fprintf(&b, "incompatible schema: written as %s version %d, now version %d", e.Old.Format, e.Old.Fingerprint, e.New.Fingerprint)
	default:
		fmt.Fprintf(&b, "incompatible schema (%s):", e.Old.Format)
	}
	for _, d := range e.Diffs {
		fmt.Fprintf(&b, "\n  %s", d)
	}
	return b.String()
}

func (d Difference) String() string {
	name, old, now := d.Field, d.Old, d.New
	if name == "" {
		name = "(value)"
	}
	if old == "" {
		old = "(none)"
	}
	if now == "" {
		now = "(none)"
	}
	s := fmt.Sprintf("%s: %s -> %s", name, old, now)
	if d.Reason != "" {
		s += " (" + d.Reason + ")"
	}
	return s
}

// Compatible says whether what was written with the schema old can be read with
// the schema now, without a wrong value anywhere. If not, the error is an
// *IncompatibleError that lists each field in the way.
//
// Equal fingerprints can be read. Formats that go by name (cbor, json) can also
// be read if fields were added, which then are zero, or removed, if an integer
// or float got wider, or if a value became a pointer. A field added and another
// of its type removed at one place look like a renaming, which would silently
// empty the field: do one, take a checkpoint, then the other.
func Compatible(old, now Schema) error {
	if old.Format == now.Format && old.Fingerprint == now.Fingerprint {
		return nil
	}
	e := &IncompatibleError{Old: old, New: now}
	if old.Format == now.Format && (old.Format == formatCBOR || old.Format == formatJSON) {
		if e.Diffs = byName(old.Fields, now.Fields); len(e.Diffs) == 0 {
			return nil
		}
		return e
	}
	if old.Format == now.Format || len(old.Fields) > 0 && len(now.Fields) > 0 {
		e.Diffs = byPosition(old.Fields, now.Fields)
	}
	return e
}

// byPosition lists all differences of a format in which nothing may differ.
func byPosition(old, now []Field) (ds []Difference) {
	olds, news := index(old), index(now)
	for _, name := range union(olds, news) {
		if a, b := olds[name], news[name]; a != b {
			ds = append(ds, Difference{Field: name, Old: a, New: b})
		}
	}
	if len(ds) > 0 {
		return ds
	}
	for i := range old {
		if old[i] != now[i] {
			ds = append(ds, Difference{old[i].Name, old[i].Type, now[i].Type, "at another place: " + now[i].Name + " stands here"})
		}
	}
	return ds
}

// byName lists the differences that a format with named fields cannot bridge.
func byName(old, now []Field) (ds []Difference) {
	olds, news := index(old), index(now)
	type place struct{ parent, typ string }
	removed := map[place]string{}
	var added []string
	unreadable := map[string]bool{}
	for _, name := range union(olds, news) {
		a, inOld := olds[name]
		b, inNew := news[name]
		up := parent(name)
		switch {
		case unreadable[up] && name != "":
			unreadable[name] = true // said by its parent
		case inOld && inNew && (a == b || !inKey(name) && widens(a, b)):
		case inOld && inNew:
			unreadable[name] = true
			ds = append(ds, Difference{Field: name, Old: a, New: b})
		case inKey(name) && has(olds, up) && has(news, up):
			ds = append(ds, Difference{name, a, b, "the keys of a map cannot change, two could become one"})
		case inOld && has(news, up):
			removed[place{up, a}] = name
		case inNew && has(olds, up):
			added = append(added, name)
		}
	}
	for _, name := range added {
		if was, ok := removed[place{parent(name), news[name]}]; ok {
			ds = append(ds,
				Difference{Field: was, Old: olds[was], Reason: "looks renamed to " + name + "; remove and add in two steps, with a checkpoint between"})
		}
	}
	return ds
}

// widens says whether every value of the type old is one of the type now.
func widens(old, now string) bool {
	now, pointer := strings.CutPrefix(now, "*")
	if _, was := strings.CutPrefix(old, "*"); was {
		if !pointer {
			return false // nil would become a value
		}
		old = old[1:]
	}
	if old == now {
		return true
	}
	a, b := numbers[old], numbers[now]
	switch {
	case a.bits == 0 || b.bits == 0 || a.float != b.float:
		return false
	case a.signed == b.signed:
		return a.bits <= b.bits
	default:
		return b.signed && a.bits < b.bits
	}
}

var numbers = map[string]struct {
	bits          int
	signed, float bool
}{
	"int8": {8, true, false}, "int16": {16, true, false}, "int32": {32, true, false}, "int64": {64, true, false},
	"uint8": {8, false, false}, "uint16": {16, false, false}, "uint32": {32, false, false}, "uint64": {64, false, false},
	"float32": {32, true, true}, "float64": {64, true, true},
}

func index(fields []Field) map[string]string {
	m := make(map[string]string, len(fields))
	for _, f := range fields {
		m[f.Name] = f.Type
	}
	return m
}

// union is the names of both, sorted, so that a parent is before its children.
func union(a, b map[string]string) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// parent is the path of the node that holds the one at path.
func parent(path string) string {
	for _, suffix := range []string{"[]", "{}", "{key}"} {
		if up, ok := strings.CutSuffix(path, suffix); ok {
			return up
		}
	}
	return path[:max(0, strings.LastIndexByte(path, '.'))]
}

func inKey(path string) bool { return strings.Contains(path, "{key}") }

func has(m map[string]string, name string) bool { _, ok := m[name]; return ok }
