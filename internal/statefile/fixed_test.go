package statefile

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// What AddFixed writes is what Add writes, byte for byte, in whatever pieces it
// comes.
func TestAddFixedIsAdd(t *testing.T) {
	rnd := rand.New(rand.NewSource(seed(t)))
	for range 40 {
		c := RunConfig{
			Kind: checkpoint.BaseRun, Range: Everything, SubWidth: Absent,
			KeyWidth: []int{1, 8, 24}[rnd.Intn(3)], ValWidth: []int{1, 8, 24, 70_000}[rnd.Intn(4)],
		}
		n := []int{0, 1, 9, 3000, 20000}[rnd.Intn(5)]
		if c.ValWidth > blockTarget {
			n = min(n, 9)
		}
		hashes, keys, vals := make([]uint64, n), make([]byte, n*c.KeyWidth), make([]byte, n*c.ValWidth)
		for i := range hashes {
			hashes[i] = uint64(i/2) * 77 // some are equal
		}
		rnd.Read(keys)
		rnd.Read(vals)
		written := func(add func(w *RunWriter) error) (checkpoint.Ref, map[string][]byte) {
			s := newMapStore()
			w := NewPacker(t.Context(), s, named(Options{})).NewRun(c)
			if err := add(w); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			p, err := w.Finish()
			if err != nil {
				t.Fatal(err)
			}
			refs, _, err := Collect(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			return refs[0], s.objects
		}
		one, want := written(func(w *RunWriter) error {
			for i, h := range hashes {
				if err := w.Add(h, keys[i*c.KeyWidth:][:c.KeyWidth], nil, vals[i*c.ValWidth:][:c.ValWidth], 0); err != nil {
					return err
				}
			}
			return nil
		})
		many, got := written(func(w *RunWriter) error {
			for from := 0; from < n; {
				to := min(n, from+rnd.Intn(5000))
				if err := w.AddFixed(hashes[from:to], keys[from*c.KeyWidth:to*c.KeyWidth], vals[from*c.ValWidth:to*c.ValWidth]); err != nil {
					return err
				}
				from = to
			}
			return nil
		})
		if diff := cmp.Diff(one, many); diff != "" {
			t.Fatalf("%+v, %d entries: %s", c, n, diff)
		}
		if len(got) != len(want) {
			t.Fatalf("%d objects, not %d", len(got), len(want))
		}
		for name, b := range want {
			if !bytes.Equal(b, got[name]) {
				t.Fatalf("%+v, %d entries: object %s differs", c, n, name)
			}
		}
	}
}

func TestAddFixedRefuses(t *testing.T) {
	k := make([]byte, 16)
	narrow := fixed16
	narrow.Range = checkpoint.HashRange{Lo: 10, Hi: 20}
	timed := fixed16
	timed.Times = true
	for _, tt := range []struct {
		name   string
		c      RunConfig
		hashes []uint64
		keys   []byte
		want   string
	}{
		{"descending", fixed16, []uint64{2, 1}, k, "entries must ascend"},
		{"below the range", narrow, []uint64{9, 10}, k, "outside"},
		{"above the range", narrow, []uint64{20, 21}, k, "outside"},
		{"keys of another width", fixed16, []uint64{1, 2}, k[:14], "14 bytes of keys"},
		{"times", timed, []uint64{1, 2}, k, "2 hashes"},
		{"table", RunConfig{Kind: checkpoint.TableRun, KeyWidth: 8, SubWidth: Absent, ValWidth: 8}, []uint64{0, 1}, k, "2 hashes"},
		{"kind", RunConfig{Kind: 9}, []uint64{1, 2}, k, "no such kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := NewPacker(t.Context(), newMapStore(), named(Options{})).NewRun(tt.c)
			if err := w.AddFixed(tt.hashes, tt.keys, k); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if _, err := w.Finish(); err == nil {
				t.Error("the run was finished")
			}
		})
	}
}
