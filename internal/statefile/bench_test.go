package statefile

import (
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

const benchEntries = 1 << 20

var fixed16 = RunConfig{Kind: checkpoint.BaseRun, Range: Everything, KeyWidth: 8, SubWidth: Absent, ValWidth: 8}

func perEntry(b *testing.B) {
	b.ReportMetric(float64(b.N)*benchEntries/b.Elapsed().Seconds()/1e6, "M-entries/s")
}

func BenchmarkWriteFixed16(b *testing.B) {
	b.ReportAllocs()
	p := NewPacker(b.Context(), &discard{}, named(Options{}))
	var key, val [8]byte
	for b.Loop() {
		w := p.NewRun(fixed16)
		for i := range uint64(benchEntries) {
			le.PutUint64(key[:], i)
			le.PutUint64(val[:], i)
			if err := w.Add(i<<40, key[:], nil, val[:], 0); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := w.Finish(); err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b)
}

func BenchmarkWriteStrings(b *testing.B) {
	b.ReportAllocs()
	p := NewPacker(b.Context(), &discard{}, named(Options{}))
	c := fixed16
	c.KeyWidth = Variable
	key := []byte("customer-000")
	var val [8]byte
	for b.Loop() {
		w := p.NewRun(c)
		for i := range uint64(benchEntries) {
			le.PutUint64(val[:], i)
			if err := w.Add(i<<40, key, nil, val[:], 0); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := w.Finish(); err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b)
}

func BenchmarkReadFixed16(b *testing.B) {
	s := newMapStore()
	var entries []Entry
	for i := range uint64(benchEntries) {
		entries = append(entries, Entry{Hash: i << 40, Key: le.AppendUint64(nil, i), Value: le.AppendUint64(nil, i)})
	}
	ref, objects := write(b, s, fixed16, entries)
	b.ReportAllocs()
	var sum uint64
	for b.Loop() {
		r, err := OpenRun(b.Context(), s, ref, objects)
		if err != nil {
			b.Fatal(err)
		}
		err = r.All(b.Context(), Everything, nil, func(e Entry) error {
			sum += le.Uint64(e.Value)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	perEntry(b)
}
