package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/internal/transport"
)

// collect is an input that remembers what it was given.
type collect[T any] struct {
	values []T
	times  []int64
	marks  []int64
	runs   int
}

func (c *collect[T]) Process(r *element.Run[T]) error {
	c.values = append(c.values, r.Values...)
	c.times = append(c.times, r.Times...)
	c.runs++
	return nil
}

func (c *collect[T]) Watermark(t int64) error {
	c.marks = append(c.marks, t)
	return nil
}

func TestMapAndFilterKeepTimes(t *testing.T) {
	last := &collect[string]{}
	m := NewMap("double", func(v int) string { return strings.Repeat("x", v) }, []any{last})
	f := NewFilter("odd", func(v int) bool { return v%2 == 1 }, []any{m.Entries[0].Input()})
	r := &element.Run[int]{Values: []int{1, 2, 3, 4, 5}, Times: []int64{10, 20, 30, 40, 50}}
	if err := f.Entries[0].Run(r, 0, 5); err != nil {
		t.Fatal(err)
	}
	if err := f.Entries[0].Run(r, 3, 5); err != nil { // a part of the batch
		t.Fatal(err)
	}
	if err := f.Entries[0].Watermark(25); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "xxx", "xxxxx", "xxxxx"}, last.values); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{10, 30, 50, 50}, last.times); diff != "" {
		t.Error(diff)
	}
	if last.runs != 2 || len(last.marks) != 1 {
		t.Errorf("%d runs, marks %v", last.runs, last.marks)
	}
}

func TestSeveralConsumersSeeTheSameRun(t *testing.T) {
	a, b := &collect[int]{}, &collect[int]{}
	keep := NewFilter("all", func(int) bool { return true }, []any{a})
	m := NewMap("next", func(v int) int { return v + 1 }, []any{keep.Entries[0].Input(), b})
	if err := m.Entries[0].Run(&element.Run[int]{Values: []int{1, 2}}, 0, 2); err != nil {
		t.Fatal(err)
	}
	want := []int{2, 3}
	if !cmp.Equal(a.values, want) || !cmp.Equal(b.values, want) {
		t.Errorf("%v and %v", a.values, b.values)
	}
}

func TestWhereNamesTheRecordOnlyWhileUserCodeRuns(t *testing.T) {
	bad := NewMap("bad", func(v int) int {
		if v == 3 {
			panic("three")
		}
		return v
	}, nil)
	first := NewMap("first", func(v int) int { return v }, []any{bad.Entries[0].Input()})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		first.Entries[0].Run(&element.Run[int]{Values: []int{1, 2, 3}}, 0, 3)
	}()
	if op, record := bad.Op.(Where).Where(); op != "bad" || record != "record 3" {
		t.Errorf("%q, %q", op, record)
	}
	if _, record := first.Op.(Where).Where(); record != "" {
		t.Errorf("first is blamed for %q", record)
	}
}

func TestDescribeIsBounded(t *testing.T) {
	s := Describe(strings.Repeat("é", 1000))
	if len(s) > 210 || !strings.HasSuffix(s, "é...") {
		t.Errorf("%d bytes: %q", len(s), s)
	}
}

// drained takes everything out of a ring.
func drained(r *transport.Ring) (values []int, hashes []uint64, kinds []element.Kind) {
	for {
		e, ok := r.Pop()
		if !ok {
			return values, hashes, kinds
		}
		kinds = append(kinds, e.Kind)
		if e.Batch != nil {
			b := e.Batch.(*element.Run[int])
			values = append(values, b.Values...)
			hashes = append(hashes, b.Hashes...)
			b.Recycle()
		}
	}
}

func rings(n, capacity int) (rs []*transport.Ring, outs []Channel) {
	for range n {
		r := transport.NewRing(capacity)
		rs, outs = append(rs, r), append(outs, r)
	}
	return rs, outs
}

func ints(from, n int) *element.Run[int] {
	r := &element.Run[int]{}
	for i := range n {
		r.Values = append(r.Values, from+i)
	}
	return r
}

func TestEdgesPlaceRecords(t *testing.T) {
	hash := func(seed uint64) (func(int) uint64, error) { return keyhash.For[int](seed) }
	for _, kind := range []graph.EdgeKind{graph.Hash, graph.Rebalance, graph.Broadcast} {
		t.Run(kind.String(), func(t *testing.T) {
			rs, outs := rings(3, 64)
			e := NewEdge[int](EdgeConfig{Kind: kind, Hash: hash, HashSeed: 5, Outs: outs, First: 1, Batch: 8})
			in := e.Input().(Input[int])
			for i := range 10 {
				if err := in.Process(ints(10*i, 10)); err != nil {
					t.Fatal(err)
				}
			}
			e.Flush(true)
			h, _ := hash(5)
			seen := 0
			for i, r := range rs {
				values, hashes, _ := drained(r)
				seen += len(values)
				for k, v := range values {
					switch kind {
					case graph.Hash:
						if hashes[k] != h(v) || keyhash.Owner(h(v), 3) != i {
							t.Errorf("%d went to %d with hash %x", v, i, hashes[k])
						}
					case graph.Rebalance:
						if (v+1)%3 != i {
							t.Errorf("%d went to %d", v, i)
						}
					case graph.Broadcast:
						if v != k {
							t.Errorf("%d came at %d", v, k)
						}
					}
				}
			}
			if want := map[bool]int{true: 300, false: 100}[kind == graph.Broadcast]; seen != want {
				t.Errorf("%d records of %d", seen, want)
			}
		})
	}
}

func TestBarrierStandsBehindEverythingTakenBefore(t *testing.T) {
	rs, outs := rings(1, 2)
	e := NewEdge[int](EdgeConfig{Kind: graph.Forward, Outs: outs, Batch: 4})
	in := e.Input().(Input[int])
	in.Process(ints(0, 14)) // three batches and a part of one: more than the ring takes
	e.Emit(element.Element{Kind: element.Barrier})
	in.Process(ints(14, 3))
	if n := e.Queued(); n != 9 {
		t.Errorf("%d records are queued", n)
	}
	var values []int
	var kinds []element.Kind
	for !e.Flush(true) {
		v, _, k := drained(rs[0])
		values, kinds = append(values, v...), append(kinds, k...)
	}
	v, _, k := drained(rs[0])
	values, kinds = append(values, v...), append(kinds, k...)
	if diff := cmp.Diff(ints(0, 17).Values, values); diff != "" {
		t.Error(diff)
	}
	want := []element.Kind{element.Records, element.Records, element.Records, element.Records, element.Barrier, element.Records}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestEdgeAllocatesNothingInSteadyState(t *testing.T) {
	hash := func(seed uint64) (func(int) uint64, error) { return keyhash.For[int](seed) }
	rs, outs := rings(2, 8)
	e := NewEdge[int](EdgeConfig{Kind: graph.Hash, Hash: hash, Outs: outs})
	in, r := e.Input().(Input[int]), ints(0, 1024)
	round := func() {
		in.Process(r)
		e.Flush(true)
		for _, ring := range rs {
			for {
				e, ok := ring.Pop()
				if !ok {
					break
				}
				e.Batch.Recycle()
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations for a batch", n)
	}
}

func TestRecycledBatchesKeepNoRecordAlive(t *testing.T) {
	rs, outs := rings(1, 8)
	e := NewEdge[*int](EdgeConfig{Kind: graph.Forward, Outs: outs})
	e.Input().(Input[*int]).Process(&element.Run[*int]{Values: []*int{new(int)}})
	e.Flush(true)
	el, _ := rs[0].Pop()
	b := el.Batch.(*element.Run[*int])
	values := b.Values
	b.Recycle()
	if values[0] != nil {
		t.Error("the batch still points to the record")
	}
}
