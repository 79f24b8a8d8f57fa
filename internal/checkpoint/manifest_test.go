package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/staunchdev/staunch/codec"
)

// fill sets every field of v to something that is not its zero value, so that a
// manifest made by it uses all of the format.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("s%d", *n))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n % 100))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n % 100))
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(v.Kind())
	}
}

// fullManifest uses every field; its references are sound.
func fullManifest() *Manifest {
	m := new(Manifest)
	n := 0
	fill(reflect.ValueOf(m).Elem(), &n)
	for i := range m.Objects {
		m.Objects[i].Size = 1 << 30
	}
	i := 0
	for _, r := range m.Refs() {
		r.Clip = HashRange{uint64(i), math.MaxUint64}
		r.Object, r.Length, r.IndexOff = i%2, 1000, 900
		r.Inline = nil
		if i++; i%5 == 0 {
			r.Object, r.Inline, r.Length, r.IndexOff = -1, []byte("an inline run"), 13, 4
		}
	}
	return m
}

const goldenManifest = "testdata/manifest.golden"

// TestManifestGolden holds the format: it fails if a manifest that was written
// once cannot be read, or would be written otherwise.
func TestManifestGolden(t *testing.T) {
	m := fullManifest()
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(goldenManifest, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(goldenManifest)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, golden) {
		t.Errorf("the manifest is encoded otherwise than in %s", goldenManifest)
	}
	got, err := DecodeManifest("ckpt/x", golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got); diff != "" {
		t.Error(diff)
	}
}

func TestManifestDamage(t *testing.T) {
	b, err := fullManifest().Encode()
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, b []byte) {
		t.Helper()
		_, err := DecodeManifest("ckpt/x", b)
		var corrupt *CorruptError
		if !errors.Is(err, ErrCorrupt) || !errors.As(err, &corrupt) || corrupt.Object != "ckpt/x" {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range b {
		for _, bit := range []byte{1, 0x80} {
			damaged := bytes.Clone(b)
			damaged[i] ^= bit
			check(fmt.Sprintf("byte %d flipped by %x", i, bit), damaged)
		}
		check(fmt.Sprintf("cut at %d", i), b[:i])
	}
	_, err = DecodeManifest("ckpt/x", b[:len(b)-1])
	if want := fmt.Sprintf("ckpt/x is corrupt at offset 12: length of the body: expected %d, found %d", len(b)-manifestHeader, len(b)-manifestHeader-1); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	check("one byte more", append(bytes.Clone(b), 0))
	other := *fullManifest()
	other.Job = "other"
	o, _ := other.Encode()
	check("body of another", append(bytes.Clone(b[:manifestHeader]), o[manifestHeader:]...))
}

// sealed puts an envelope around a body, as Encode does.
func sealed(version uint16, body []byte) []byte {
	b := []byte(manifestMagic)
	b = append(b, byte(version), byte(version>>8), 0, 0)
	b = append(b, byte(len(body)), byte(len(body)>>8), byte(len(body)>>16), byte(len(body)>>24))
	sum := manifestSum(b, body)
	b = append(b, byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24))
	return append(b, body...)
}

func TestManifestIsDecodedStrictly(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		want error
	}{
		{"newer version", sealed(2, []byte{0xa0}), ErrNewer},
		{"version 0", sealed(0, []byte{0xa0}), ErrCorrupt},
		{"unknown key", sealed(1, []byte{0xa1, 0x18, 0x63, 0x01}), ErrCorrupt},
		{"duplicate key", sealed(1, []byte{0xa2, 0x02, 0x01, 0x02, 0x02}), ErrCorrupt},
		{"indefinite length", sealed(1, []byte{0xbf, 0xff}), ErrCorrupt},
		{"trailing bytes", sealed(1, []byte{0xa0, 0xa0}), ErrCorrupt},
		{"not a map", sealed(1, []byte{0x01}), ErrCorrupt},
		{"empty", sealed(1, nil), ErrCorrupt},
		{"empty map", sealed(1, []byte{0xa0}), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := DecodeManifest("m", tt.b); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestManifestChecksReferences(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(m *Manifest)
		want  string
	}{
		{"object out of range", func(m *Manifest) { m.Operators[1].States[0].Segments[0].Base.Object = 2 }, "operator s"},
		{"beyond the object", func(m *Manifest) { *m.Operators[0].Splits = Ref{Offset: 1<<30 - 9, Length: 10} }, "splits"},
		{"offset and length overflow", func(m *Manifest) { *m.Operators[0].Splits = Ref{Offset: 1, Length: math.MaxInt64} }, "splits"},
		{"inline too long", func(m *Manifest) {
			*m.Statistics = Ref{Object: -1, Inline: make([]byte, MaxInlineRun+1), Length: MaxInlineRun + 1}
		}, "statistics"},
		{"inline of another length", func(m *Manifest) { *m.Statistics = Ref{Object: -1, Length: 3} }, "statistics"},
		{"index behind the run", func(m *Manifest) { m.InFlight[0].Runs[0].IndexOff = 1001 }, "in-flight"},
		{"too much inline", func(m *Manifest) {
			r := Ref{Object: -1, Inline: make([]byte, MaxInlineRun), Length: MaxInlineRun}
			for range MaxInline/MaxInlineRun + 1 {
				m.InFlight[0].Runs = append(m.InFlight[0].Runs, r)
			}
		}, "inline runs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := fullManifest()
			tt.spoil(m)
			if _, err := m.Encode(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Encode: %v, want it to name %q", err, tt.want)
			}
			body, err := manifestEncoding.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := DecodeManifest("m", sealed(1, body)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("Decode: %v", err)
			}
		})
	}
}

// TestManifestBudget measures a large job: 16 operators of 64 subtasks with 256
// segments a state and subtask.
func TestManifestBudget(t *testing.T) {
	operators, subtasks, segments := 16, 64, 256
	if testing.Short() {
		operators = 2
	}
	rng := rand.New(rand.NewPCG(1, 2))
	schema := &codec.Schema{Format: "flat", Fingerprint: rng.Uint64(), Fields: []codec.Field{{Name: "count", Type: "int64"}, {Name: "customer", Type: "string"}}}
	m := &Manifest{Job: "orders", ID: 1 << 20, Epoch: Epoch{1 << 10, 3}, Mode: ExactlyOnce, HashSeed: rng.Uint64()}
	for o := range 8 * subtasks {
		m.Objects = append(m.Objects, Object{Name: ObjectName(Origin{3, m.Epoch, m.ID - ID(o)}, make([]byte, 8)), Size: 64 << 20})
	}
	handles := 0
	for o := range operators {
		op := OperatorManifest{Name: fmt.Sprintf("operator-%d", o), Kind: "process", Parallelism: subtasks, Key: schema}
		s := StateManifest{Name: "state", Kind: ValueState, Value: schema}
		for i := range subtasks * segments {
			lo := uint64(i) << 50
			r := HashRange{lo, lo + 1<<50 - 1}
			s.Segments = append(s.Segments, Segment{Range: r, Base: Ref{
				Object: rng.IntN(len(m.Objects)), Offset: rng.Int64N(56 << 20), Length: 8 << 20, IndexOff: 8<<20 - 5000, IndexCRC: rng.Uint32(),
				Kind: BaseRun, Blocks: 128, Entries: 500_000, Bytes: 8 << 20, Clip: r,
			}})
			handles++
		}
		for i := range subtasks {
			op.Watermarks = append(op.Watermarks, RangeWatermark{HashRange{uint64(i) << 58, uint64(i+1)<<58 - 1}, math.MaxInt64 / 2, math.MaxInt64 / 2})
		}
		op.States = []StateManifest{s}
		m.Operators = append(m.Operators, op)
	}
	b, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	budget := 64<<10 + 256*handles
	t.Logf("%d handles, %d bytes, %.1f a handle; budget %d", handles, len(b), float64(len(b))/float64(handles), budget)
	if len(b) > budget {
		t.Errorf("%d bytes, budget %d", len(b), budget)
	}
	got, err := DecodeManifest("m", b)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := got.Encode(); err != nil || !bytes.Equal(b, again) {
		t.Errorf("the manifest is decoded otherwise: %v", err)
	}
	m.Operators, m.Objects = nil, nil
	for o := range operators {
		op := OperatorManifest{Name: fmt.Sprintf("operator-%d", o), Kind: "process", Parallelism: subtasks, Key: schema, States: []StateManifest{{Name: "state", Kind: ValueState, Value: schema}}}
		for i := range subtasks {
			op.Watermarks = append(op.Watermarks, RangeWatermark{HashRange{uint64(i) << 58, uint64(i+1)<<58 - 1}, math.MaxInt64 / 2, math.MaxInt64 / 2})
		}
		m.Operators = append(m.Operators, op)
	}
	b, err = m.Encode()
	t.Logf("without handles %d bytes, %v", len(b), err)
	if len(b) > 64<<10 {
		t.Errorf("%d bytes without handles, budget %d", len(b), 64<<10)
	}
}

func FuzzManifest(f *testing.F) {
	// Small seeds that together use every field: the fuzzer is slow on large ones.
	full := fullManifest()
	seed := func(m Manifest) {
		b, err := m.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[manifestHeader:])
	}
	seed(Manifest{})
	seed(Manifest{Objects: full.Objects, Statistics: full.Statistics, Epoch: full.Epoch, Job: full.Job, Parent: 3, Kind: Final})
	seed(Manifest{Objects: full.Objects, InFlight: full.InFlight[:1]})
	for _, o := range full.Operators {
		seed(Manifest{Objects: full.Objects, Operators: []OperatorManifest{{Name: o.Name, States: o.States[:1]}}})
		o.States = nil
		seed(Manifest{Objects: full.Objects, Operators: []OperatorManifest{o}})
	}
	// The fuzzer changes the body; the envelope is made to fit, else it would
	// never come past the checksum. The bytes as they are must not panic either.
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = DecodeManifest("m", body)
		m, err := DecodeManifest("m", sealed(1, body))
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("not named as damage: %v", err)
			}
			return
		}
		again, err := m.Encode()
		if err != nil {
			t.Fatalf("decoded, not encoded: %v", err)
		}
		m2, err := DecodeManifest("m", again)
		if err != nil {
			t.Fatalf("encoded, not decoded: %v", err)
		}
		final, err := m2.Encode()
		if err != nil || !bytes.Equal(again, final) {
			t.Fatalf("encoded twice, differs: %v", err)
		}
	})
}
