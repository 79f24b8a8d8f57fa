package staunch

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
)

// discard is the end of a chain that is measured.
type discard[T any] struct{ n int }

func (d *discard[T]) Process(r *element.Run[T]) error { d.n += len(r.Values); return nil }
func (d *discard[T]) Watermark(int64) error           { return nil }

// made makes one subtask's operator of a job's only keyed operator, without a
// task around it.
func made[In, Out any](tb testing.TB, build func(j *Job)) (operator.Input[In], *discard[Out]) {
	tb.Helper()
	j := NewJob("bench")
	build(j)
	n := j.nodes[len(j.nodes)-1]
	out := &discard[Out]{}
	m := n.make(n.Name, [][]any{{operator.Input[Out](out)}})
	err := m.Op.Open(&operator.Runtime{
		Now: func() int64 { return 1 }, HashSeed: 42, Range: checkpoint.HashRange{Hi: ^uint64(0)},
		Log:     slog.New(slog.DiscardHandler),
		Counter: func(string) *operator.Counter { return new(operator.Counter) },
		Exec: func(work func(context.Context), then func()) {
			work(tb.Context())
			then()
		},
		Fail: func(err error) { tb.Fatal(err) },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return m.Entries[0].Input().(operator.Input[In]), out
}

// slices of 1024 records over so many keys, in an order that caches do not like.
func slicesOver[T any](keys int, key func(i uint64) T) []*element.Run[T] {
	var rs []*element.Run[T]
	i := uint64(0)
	for range max(1, keys/1024) {
		r := &element.Run[T]{}
		for range 1024 {
			i += 0x9e3779b97f4a7c15
			r.Values = append(r.Values, key(i%uint64(keys)))
		}
		rs = append(rs, r)
	}
	return rs
}

func identity[T any](v T) T { return v }

func countJob[T comparable](j *Job) { Count(KeyBy(FromSlice(j, "in", []T{}), identity[T]), "count") }

func processJob(j *Job) {
	Process(KeyBy(FromSlice(j, "in", []uint64{}), identity[uint64]), "count", func(s *Setup) ProcessFunc[uint64, uint64, KV[uint64, int64]] {
		return func(c *Ctx[KV[uint64, int64]], k uint64, _ uint64) error {
			c.Emit(KV[uint64, int64]{k, 1})
			return nil
		}
	})
}

func BenchmarkKeyed(b *testing.B) {
	for _, keys := range []int{1000, 1_000_000} {
		u := slicesOver(keys, identity[uint64])
		s := slicesOver(keys, func(i uint64) string { return fmt.Sprintf("key-%08d", i) })
		b.Run(fmt.Sprintf("map/u64/%d", keys), func(b *testing.B) {
			m := map[uint64]int64{}
			benchmarkRuns(b, u, func(r *element.Run[uint64]) {
				for _, k := range r.Values {
					m[k]++
				}
			})
		})
		b.Run(fmt.Sprintf("count/u64/%d", keys), func(b *testing.B) {
			in, _ := made[uint64, KV[uint64, int64]](b, countJob[uint64])
			benchmarkRuns(b, u, func(r *element.Run[uint64]) { in.Process(r) })
		})
		b.Run(fmt.Sprintf("map/string/%d", keys), func(b *testing.B) {
			m := map[string]int64{}
			benchmarkRuns(b, s, func(r *element.Run[string]) {
				for _, k := range r.Values {
					m[k]++
				}
			})
		})
		b.Run(fmt.Sprintf("count/string/%d", keys), func(b *testing.B) {
			in, _ := made[string, KV[string, int64]](b, countJob[string])
			benchmarkRuns(b, s, func(r *element.Run[string]) { in.Process(r) })
		})
	}
	b.Run("process/stateless", func(b *testing.B) {
		in, _ := made[uint64, KV[uint64, int64]](b, processJob)
		benchmarkRuns(b, slicesOver(1000, identity[uint64]), func(r *element.Run[uint64]) { in.Process(r) })
	})
}

// benchmarkRuns reports the time of a record. Every key is there before.
func benchmarkRuns[T any](b *testing.B, rs []*element.Run[T], process func(*element.Run[T])) {
	for _, r := range rs {
		process(r)
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		process(rs[n%len(rs)])
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n*1024), "ns/record")
}

// No operator of this package allocates for a record once its keys are there.
func TestNoAllocationsPerRecord(t *testing.T) {
	u := slicesOver(1000, identity[uint64])[0]
	s := slicesOver(1000, func(i uint64) string { return fmt.Sprintf("key-%08d", i) })[0]
	for name, once := range map[string]func(){
		"count":        processing[uint64, KV[uint64, int64]](t, u, countJob[uint64]),
		"count string": processing[string, KV[string, int64]](t, s, countJob[string]),
		"process":      processing[uint64, KV[uint64, int64]](t, u, processJob),
		"reduce": processing[uint64, uint64](t, u, func(j *Job) {
			Reduce(KeyBy(FromSlice(j, "in", []uint64{}), identity[uint64]), "r", func(a, v uint64) uint64 { return a + v })
		}),
		"aggregate": processing[uint64, KV[uint64, uint64]](t, u, func(j *Job) {
			Aggregate(KeyBy(FromSlice(j, "in", []uint64{}), identity[uint64]), "a", Aggregator[uint64, [2]uint64, uint64]{
				Add:    func(a [2]uint64, v uint64) [2]uint64 { return [2]uint64{a[0] + v, a[1] + 1} },
				Result: func(a [2]uint64) uint64 { return a[0] },
			})
		}),
		"distinct": processing[uint64, uint64](t, u, func(j *Job) { Distinct(KeyBy(FromSlice(j, "in", []uint64{}), identity[uint64]), "d") }),
		"latest": processing[uint64, uint64](t, u, func(j *Job) {
			Latest(KeyBy(FromSlice(j, "in", []uint64{}), identity[uint64]), "l", identity[uint64])
		}),
		"flatmap": processing[uint64, uint64](t, u, func(j *Job) {
			FlatMap(FromSlice(j, "in", []uint64{}), func(c *Ctx[uint64], v uint64) error { c.Emit(v); c.Emit(v); return nil })
		}),
	} {
		once()
		if n := testing.AllocsPerRun(100, once); n >= 1 {
			t.Errorf("%s: %v allocations a slice of 1024 records", name, n)
		}
	}
}

func processing[In, Out any](t *testing.T, r *element.Run[In], build func(j *Job)) func() {
	in, _ := made[In, Out](t, build)
	return func() {
		if err := in.Process(r); err != nil {
			t.Fatal(err)
		}
	}
}
