package graph

import (
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

func schema[T any]() *codec.Schema {
	s := codec.For[T]().Schema()
	return &s
}

func op(name string, states ...checkpoint.StateMeta) Restorable {
	return Restorable{Meta: checkpoint.OperatorMeta{Name: name, Kind: "process", Key: schema[string](), States: states}}
}

func value[T any](name string) checkpoint.StateMeta {
	return checkpoint.StateMeta{Name: name, Kind: checkpoint.ValueState, Value: schema[T]()}
}

// taken is a checkpoint of the given operators.
func taken(ops ...Restorable) *checkpoint.Manifest {
	m := &checkpoint.Manifest{ID: 7}
	for _, o := range ops {
		old := checkpoint.OperatorManifest{Name: o.Meta.Name, Kind: o.Meta.Kind, Key: o.Meta.Key}
		for _, s := range o.Meta.States {
			old.States = append(old.States, checkpoint.StateManifest{Name: s.Name, Kind: s.Kind, Value: s.Value, Entries: 3})
		}
		if o.Meta.Kind == "source" {
			old.Splits = &checkpoint.Ref{Entries: 2}
		}
		m.Operators = append(m.Operators, old)
	}
	return m
}

func source(name string) Restorable {
	return Restorable{Meta: checkpoint.OperatorMeta{Name: name, Kind: "source"}}
}

func former(r Restorable, names ...string) Restorable { r.Former = names; return r }

func formerState(s checkpoint.StateMeta, names ...string) checkpoint.StateMeta {
	s.Former = names
	return s
}

func TestCheckRestore(t *testing.T) {
	for _, tt := range []struct {
		name    string
		old     []Restorable
		plan    []Restorable
		drop    []string
		want    string   // "operator<-old state<-old", - for what starts empty
		dropped string   // comma separated
		faults  []string // parts of the error; none: no error
	}{
		{name: "the same job", old: []Restorable{source("in"), op("count", value[int64]("n"))},
			plan: []Restorable{source("in"), op("count", value[int64]("n"))}, want: "in<-in count<-count n<-n"},
		{name: "another order and a new operator before it", old: []Restorable{op("a", value[int64]("n")), op("b", value[int64]("n"))},
			plan: []Restorable{op("c", value[int64]("n")), op("b", value[int64]("n")), op("a", value[int64]("n"))},
			want: "c<-- n<-- b<-b n<-n a<-a n<-n"},
		{name: "a new state starts empty", old: []Restorable{op("a", value[int64]("n"))},
			plan: []Restorable{op("a", value[int64]("n"), value[string]("s"))}, want: "a<-a n<-n s<--"},
		{name: "a renamed operator is refused by name", old: []Restorable{op("c1", value[int64]("n"))},
			plan: []Restorable{op("c9", value[int64]("n"))}, want: "c9<-- n<--",
			faults: []string{`operator "c1" of checkpoint 7 (state "n" with 3 entries)`, "new without state: c9", `FormerNames("c1")`, "-drop-state c1"}},
		{name: "former name", old: []Restorable{op("c1", value[int64]("n"))},
			plan: []Restorable{former(op("c9", value[int64]("n")), "c0", "c1")}, want: "c9<-c1 n<-n"},
		{name: "a name in use is not a former name", old: []Restorable{op("a", value[int64]("n")), op("b", value[int64]("n"))},
			plan: []Restorable{former(op("a", value[int64]("n")), "b"), op("b", value[int64]("n"))}, want: "a<-a n<-n b<-b n<-n"},
		{name: "two claim one", old: []Restorable{op("a", value[int64]("n"))},
			plan: []Restorable{op("a", value[int64]("n")), former(op("b", value[int64]("n")), "a")}, want: "a<-a n<-n b<-- n<--",
			faults: []string{`operators "a" and "b" both claim the state of "a"`}},
		{name: "dropped operator", old: []Restorable{op("gone", value[int64]("n")), op("kept", value[int64]("n"))},
			plan: []Restorable{op("kept", value[int64]("n"))}, drop: []string{"gone"}, want: "kept<-kept n<-n", dropped: "gone"},
		{name: "operator dropped state by state", old: []Restorable{op("gone", value[int64]("n"), value[int64]("m"))},
			plan: nil, drop: []string{"gone/n", "gone/m"}, dropped: "gone/n,gone/m"},
		{name: "one state of two dropped is not enough", old: []Restorable{op("gone", value[int64]("n"), value[int64]("m"))},
			plan: nil, drop: []string{"gone/n"}, dropped: "gone/n", faults: []string{`operator "gone"`}},
		{name: "a lost source is refused", old: []Restorable{source("in")}, plan: nil, faults: []string{`operator "in" of checkpoint 7 (2 splits)`}},
		{name: "a state that is gone", old: []Restorable{op("a", value[int64]("count"), value[int64]("n"))},
			plan: []Restorable{op("a", value[int64]("counts"), value[int64]("n"))}, want: "a<-a counts<-- n<-n",
			faults: []string{`state "count" of operator "a"`, "new without state: counts", `state.FormerNames("count")`}},
		{name: "a renamed state", old: []Restorable{op("a", value[int64]("count"))},
			plan: []Restorable{op("a", formerState(value[int64]("counts"), "count"))}, want: "a<-a counts<-count"},
		{name: "a dropped state", old: []Restorable{op("a", value[int64]("m"), value[int64]("n"))},
			plan: []Restorable{op("a", value[int64]("n"))}, drop: []string{"a/m"}, want: "a<-a n<-n", dropped: "a/m"},
		{name: "what can be read is kept though it may be dropped", old: []Restorable{op("a", value[int64]("n"))},
			plan: []Restorable{op("a", value[int64]("n"))}, drop: []string{"a", "a/n"}, want: "a<-a n<-n"},
		{name: "another type", old: []Restorable{op("a", value[int64]("n"))},
			plan: []Restorable{op("a", value[string]("n"))}, want: "a<-a n<--", faults: []string{"value of state a/n cannot be read", "int64", "string"}},
		{name: "another type, dropped", old: []Restorable{op("a", value[int64]("n"))},
			plan: []Restorable{op("a", value[string]("n"))}, drop: []string{"a/n"}, want: "a<-a n<--", dropped: "a/n"},
		{name: "another layout", old: []Restorable{op("a", value[int64]("n"))},
			plan: []Restorable{op("a", checkpoint.StateMeta{Name: "n", Kind: checkpoint.ListState, Value: schema[int64]()})},
			want: "a<-a n<--", faults: []string{"state a/n is a list, in checkpoint 7 it is a value"}},
		{name: "a source became an operator", old: []Restorable{source("a")},
			plan: []Restorable{op("a", value[int64]("n"))}, want: "a<-- n<--", faults: []string{`operator "a" is of kind operator, in checkpoint 7 of kind source`}},
		{name: "another key", old: []Restorable{op("a", value[int64]("n"))},
			plan: []Restorable{{Meta: checkpoint.OperatorMeta{Name: "a", Kind: "process", Key: schema[int64](), States: []checkpoint.StateMeta{value[int64]("n")}}}},
			want: "a<-a n<-n", faults: []string{`key of operator "a"`}},
		{name: "another key, dropped", old: []Restorable{op("a", value[int64]("n"))},
			plan: []Restorable{{Meta: checkpoint.OperatorMeta{Name: "a", Kind: "process", Key: schema[int64](), States: []checkpoint.StateMeta{value[int64]("n")}}}},
			drop: []string{"a"}, want: "a<-- n<--", dropped: "a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := taken(tt.old...)
			got, err := CheckRestore(tt.plan, m, tt.drop)
			if len(tt.faults) == 0 && err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.faults {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("missing %q in %v", want, err)
				}
			}
			if s := show(got, m); s != tt.want {
				t.Errorf("mapping %q, want %q", s, tt.want)
			}
			if d := strings.Join(got.Dropped, ","); d != tt.dropped {
				t.Errorf("dropped %q, want %q", d, tt.dropped)
			}
		})
	}
}

func show(m *Mapping, from *checkpoint.Manifest) string {
	var out []string
	for _, o := range m.Operators {
		if o.Old < 0 {
			out = append(out, o.Name+"<--")
		} else {
			out = append(out, o.Name+"<-"+from.Operators[o.Old].Name)
		}
		for _, s := range o.States {
			if s.Old < 0 {
				out = append(out, s.Name+"<--")
			} else {
				out = append(out, s.Name+"<-"+from.Operators[o.Old].States[s.Old].Name)
			}
		}
	}
	return strings.Join(out, " ")
}

func TestCommittedSinkMayGo(t *testing.T) {
	m := &checkpoint.Manifest{ID: 7, Operators: []checkpoint.OperatorManifest{{Name: "out", Kind: "sink", Committables: &checkpoint.Ref{}}}}
	if _, err := CheckRestore(nil, m, nil); err != nil {
		t.Error(err)
	}
	m.Operators[0].Committables.Entries = 1
	if _, err := CheckRestore(nil, m, nil); err == nil || !strings.Contains(err.Error(), "1 committables that may not be visible yet") {
		t.Errorf("got %v", err)
	}
}

func TestNearNames(t *testing.T) {
	for _, tt := range []struct {
		name string
		of   []string
		want []string
	}{
		{"account", []string{"acount", "totals", "accounts", "x"}, []string{"accounts", "acount"}},
		{"a", []string{"zzzzzz"}, nil},
		{"c1", []string{"c9", "c1"}, []string{"c9"}},
	} {
		got := near(tt.name, tt.of)
		slices.Sort(got)
		if !slices.Equal(got, tt.want) {
			t.Errorf("near(%q): %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The hash is made of a key's bytes: a key that could be read, but is written in
// another way, would be looked for where it is not.
func TestKeysKeepTheirEncoding(t *testing.T) {
	keyed := func(fingerprint uint64, fields ...codec.Field) Restorable {
		r := op("a", value[int64]("n"))
		r.Meta.Key = &codec.Schema{Format: "cbor", Fingerprint: fingerprint, Fields: fields}
		return r
	}
	a, b := codec.Field{Name: "a", Type: "int64"}, codec.Field{Name: "b", Type: "int64"}
	old := keyed(1, a)
	if err := codec.Compatible(*old.Meta.Key, codec.Schema{Format: "cbor", Fingerprint: 2, Fields: []codec.Field{a, b}}); err != nil {
		t.Fatalf("the schemas should be compatible: %v", err)
	}
	if _, err := CheckRestore([]Restorable{keyed(2, a, b)}, taken(old), nil); err == nil || !strings.Contains(err.Error(), "keys cannot change") {
		t.Errorf("got %v", err)
	}
}

func TestCheckDrops(t *testing.T) {
	m := taken(source("in"), op("a", value[int64]("n"), value[int64]("m")), op("gone", value[int64]("n")), op("other", value[int64]("n")))
	plan := []Restorable{source("in"), op("a", value[int64]("n")), op("other", value[string]("n"))}
	for _, tt := range []struct {
		drop   []string
		kept   string
		faults []string
	}{
		{drop: []string{"gone", "a/m", "other/n"}},
		{drop: []string{"gone/n"}},
		{drop: []string{"a", "in", "a/n", "gone"}, kept: "a,in,a/n"},
		{drop: []string{"nosuch", "a/k", "gone"}, faults: []string{
			`nothing of the name "nosuch"`, `nothing of the name "a/k"`, "what can be dropped is a/m, other/n, gone"}},
	} {
		kept, err := CheckDrops(plan, m, tt.drop)
		if got := strings.Join(kept, ","); got != tt.kept {
			t.Errorf("%q: kept %q, want %q", tt.drop, got, tt.kept)
		}
		if err != nil && tt.faults == nil || err == nil && tt.faults != nil {
			t.Errorf("%q: %v", tt.drop, err)
		}
		for _, want := range tt.faults {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%q: missing %q in %v", tt.drop, want, err)
			}
		}
	}
	_, err := CheckDrops([]Restorable{source("in")}, taken(source("in")), []string{"nosuch"})
	if err == nil || !strings.Contains(err.Error(), "nothing can be dropped: the job claims all of it") {
		t.Errorf("got %v", err)
	}
}
