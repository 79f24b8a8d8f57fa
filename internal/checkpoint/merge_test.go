package checkpoint

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/staunchdev/staunch/codec"
)

const half = uint64(1) << 63

func mergePlan() []OperatorMeta {
	return []OperatorMeta{
		{Name: "orders", Kind: "source", Vertex: "orders", Parallelism: 2},
		{Name: "count", Kind: "process", Vertex: "count", Parallelism: 2, Key: &codec.Schema{Format: "flat"},
			States: []StateMeta{{Name: "n", Kind: ValueState}, {Name: "seen", Kind: MapState}}},
		{Name: "ledger", Kind: "sink", Vertex: "count", Parallelism: 2},
	}
}

func mergeAcks() []Ack {
	shared := Object{Name: "obj/shared", Size: 100}
	run := func(object int, lo, hi uint64) Segment {
		r := HashRange{lo, hi}
		return Segment{Range: r, Base: Ref{Object: object, Length: 10, IndexOff: 5, Clip: r, Entries: 1}}
	}
	count := func(i int, r HashRange, own string) Ack {
		return Ack{Subtask: SubtaskID{"count", i}, ID: 7, Operators: []OperatorAck{
			{Operator: "count", Range: r, Watermark: int64(i), Held: int64(i), Finished: i == 1, States: []StateAck{
				{State: "n", Entries: 3, Bytes: 30, Objects: []Object{{Name: own, Size: 50}, shared}, Segments: []Segment{run(1, r.Lo, r.Lo+9), run(0, r.Lo+10, r.Hi)}},
			}},
			{Operator: "ledger", Watermark: math.MinInt64, Held: math.MinInt64,
				Committables: []Committable{{ID: own, Prepared: 7, Subtask: i}, {ID: own, Prepared: 6, Subtask: i}}},
		}}
	}
	source := func(i int, split string) Ack {
		return Ack{Subtask: SubtaskID{"orders", i}, ID: 7, Operators: []OperatorAck{{
			Operator: "orders", Splits: []Split{{ID: split, N: 5}}, Watermark: math.MinInt64, Held: math.MinInt64,
			Lists: []ListAck{{State: "pending", Mode: SplitList, Elements: [][]byte{[]byte(split)}}},
		}}}
	}
	return []Ack{
		source(0, "b"), source(1, "a"),
		count(0, HashRange{0, half - 1}, "obj/0"), count(1, HashRange{half, math.MaxUint64}, "obj/1"),
	}
}

func TestMerge(t *testing.T) {
	packed := Packed{
		Objects: []Object{{Name: "obj/packed", Size: 9}, {Name: "obj/shared", Size: 100}},
		Operators: map[string]PackedOperator{
			"orders": {Splits: &Ref{Object: 1, Length: 2}},
			"ledger": {Committables: &Ref{Object: 0, Length: 3}},
		},
		Statistics: &Ref{Object: -1, Length: 1, Inline: []byte{1}},
	}
	m, err := Merge(Header{Job: "j", ID: 7, Parent: 6}, mergePlan(), mergeAcks(), packed)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range m.Objects {
		names = append(names, o.Name)
	}
	if got, want := strings.Join(names, " "), "obj/shared obj/0 obj/1 obj/packed"; got != want {
		t.Errorf("objects %q, want %q: one each, in the order of first use", got, want)
	}
	n := m.Operators[1].States[0]
	if n.Entries != 6 || n.Bytes != 60 || len(n.Segments) != 4 {
		t.Errorf("state n: %+v", n)
	}
	for i, want := range []int{0, 1, 0, 2} {
		if got := n.Segments[i].Base.Object; got != want {
			t.Errorf("segment %d is in object %d, want %d", i, got, want)
		}
	}
	if diff := cmp.Diff([]int{1}, m.Operators[1].Finished); diff != "" {
		t.Error(diff)
	}
	if got := len(m.Operators[1].Watermarks); got != 2 || m.Operators[0].Watermarks != nil {
		t.Errorf("watermarks %d and %v", got, m.Operators[0].Watermarks)
	}
	if _, err := m.Encode(); err != nil {
		t.Error(err)
	}

	// Whatever order the acks came in, the manifest is the same.
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		acks := mergeAcks()
		rng.Shuffle(len(acks), func(i, j int) { acks[i], acks[j] = acks[j], acks[i] })
		again, err := Merge(Header{Job: "j", ID: 7, Parent: 6}, mergePlan(), acks, packed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(acks []Ack) []Ack
		want  string
	}{
		{"a missing subtask", func(a []Ack) []Ack { return a[:3] }, "1 parts at parallelism 2"},
		{"a subtask twice", func(a []Ack) []Ack { return append(a, a[3]) }, "part 2 is that of subtask 1"},
		{"an unknown operator", func(a []Ack) []Ack { a[0].Operators[0].Operator = "x"; return a }, "orders"},
		{"a part too many", func(a []Ack) []Ack {
			return append(a, Ack{Subtask: SubtaskID{"x", 0}, Operators: []OperatorAck{{Operator: "x"}}})
		}, "not in the plan"},
		{"an unknown state", func(a []Ack) []Ack { a[2].Operators[0].States[0].State = "x"; return a }, "state x, which is not declared"},
		{"a gap between ranges", func(a []Ack) []Ack { a[3].Operators[0].Range.Lo++; return a }, "subtask 1 has hashes"},
		{"ranges that end early", func(a []Ack) []Ack { a[3].Operators[0].Range.Hi--; return a }, "subtask 1 has hashes up to"},
		{"an object with two sizes", func(a []Ack) []Ack { a[3].Operators[0].States[0].Objects[1].Size = 1; return a }, "two descriptions"},
		{"a reference to no object", func(a []Ack) []Ack { a[3].Operators[0].States[0].Segments[0].Base.Object = 2; return a }, "object 2 of 2"},
		{"overlapping segments", func(a []Ack) []Ack { a[3].Operators[0].States[0].Segments[1].Range.Lo--; return a }, "overlap"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Merge(Header{ID: 7}, mergePlan(), tt.spoil(mergeAcks()), Packed{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestGather(t *testing.T) {
	g, err := Gather(mergePlan(), mergeAcks())
	if err != nil {
		t.Fatal(err)
	}
	want := []Gathered{
		{Operator: "orders", Splits: []Split{{ID: "a", N: 5}, {ID: "b", N: 5}},
			Lists: []ListAck{{State: "pending", Mode: SplitList, Elements: [][]byte{[]byte("b"), []byte("a")}}}},
		{Operator: "count"},
		{Operator: "ledger", Committables: []Committable{
			{ID: "obj/0", Prepared: 6}, {ID: "obj/1", Prepared: 6, Subtask: 1}, {ID: "obj/0", Prepared: 7}, {ID: "obj/1", Prepared: 7, Subtask: 1}}},
	}
	if diff := cmp.Diff(want, g); diff != "" {
		t.Error(diff)
	}
	twice := mergeAcks()
	twice[1].Operators[0].Splits[0].ID = "b"
	if _, err := Gather(mergePlan(), twice); err == nil || !strings.Contains(err.Error(), "split b is owned twice") {
		t.Errorf("a split with two owners: %v", err)
	}
}
