package codec

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSchemaListsFieldsRecursively(t *testing.T) {
	want := Schema{Format: "cbor", Fingerprint: For[basket]().Schema().Fingerprint, Fields: []Field{
		{"", "struct"},
		{"Addr", "net/netip.Addr"}, {"At", "time.Time"}, {"Big", "uint64"},
		{"ByName", "map"}, {"ByName{key}", "string"}, {"ByName{}", "struct"},
		{"ByName{}.Tags", "list"}, {"ByName{}.Tags[]", "string"}, {"ByName{}.price", "int32"}, {"ByName{}.sku", "string"},
		{"Created", "int64"},
		{"Grid", "[2]list"}, {"Grid[]", "[3]list"}, {"Grid[][]", "uint8"},
		{"ID", "string"}, {"Labels", "map"}, {"Labels{key}", "int32"}, {"Labels{}", "string"},
		{"Note", "*string"}, {"On", "bool"}, {"Ratio", "float64"}, {"Raw", "bytes"},
		{"Shown", "list"}, {"Shown[]", "uint16"}, {"Small", "float32"},
		{"items", "list"}, {"items[]", "struct"}, {"items[].Tags", "list"}, {"items[].Tags[]", "string"},
		{"items[].price", "int32"}, {"items[].sku", "string"},
	}}
	if diff := cmp.Diff(want, For[basket]().Schema()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	flat := []Field{{"ID", "uint64"}, {"Customer", "string"}, {"Cents", "int64"}}
	if s := For[order]().Schema(); s.Format != "flat" || !cmp.Equal(s.Fields, flat) {
		t.Errorf("%+v", s)
	}
}

// Fingerprints are in checkpoints: they may never change.
func TestFingerprintsNeverChange(t *testing.T) {
	for _, tt := range []struct {
		name string
		s    Schema
		want uint64
	}{
		{"uint64", For[uint64]().Schema(), 0x94e3a03c6461291a},
		{"string", For[string]().Schema(), 0xd5c7da94604da641},
		{"order", For[order]().Schema(), 0x955f6387e040068e},
		{"order as CBOR", CBOR[order]().Schema(), 0xa1cc1547405359f6},
		{"basket", For[basket]().Schema(), 0x5188d037d215412},
		{"order as JSON", JSON[order]().Schema(), 0xf83e2b2068b6ce1c},
		{"text", Text().Schema(), 0x14cccef66699ca92},
		{"bytes", Bytes().Schema(), 0x2210f1ba1e1d88cb},
		{"func", Func[int]("mine", 3, nil, nil).Schema(), 3},
	} {
		if tt.s.Fingerprint != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, tt.s.Fingerprint, tt.want)
		}
	}
}

func TestCompatible(t *testing.T) {
	type v1 struct {
		A int32
		B []string
		C map[string]item
		D *uint8
		E float32
		F bool
	}
	type swapped struct {
		F bool
		C map[string]item
		B []string
		A int32
		E float32
		D *uint8
	}
	type wider struct {
		A int
		B []string
		C map[string]item
		D *uint16
		E float64
		F *bool
	}
	type added struct {
		A int32
		B []string
		C map[string]item
		D *uint8
		E float32
		F bool
		G []order
	}
	type removed struct{ B []string }
	type renamed struct {
		A int32
		B []string
		C map[string]item
		D *uint8
		E float32
		G bool
	}
	type changed struct {
		A string
		B []int64
		C []item
		D uint8
		E int32
		F bool
	}
	type narrower struct {
		A int16
		B []string
		C map[string]item
		D *uint8
		E float32
		F bool
	}
	type flat2 struct {
		ID       uint64
		Customer string
		Cents    int32
		More     bool
	}
	type flatSwapped struct {
		Customer string
		ID       uint64
		Cents    int64
	}
	type named order
	type mapKeys1 struct{ M map[int32]string }
	type mapKeys2 struct{ M map[int64]string }
	type nested2 struct {
		Items []struct {
			SKU   string `cbor:"sku"`
			Price string `cbor:"price"`
			Tags  []string
		} `cbor:"items"`
	}
	type nested1 struct {
		Items []item `cbor:"items"`
	}
	old := CBOR[v1]().Schema()
	for _, tt := range []struct {
		name     string
		old, now Schema
		want     string
	}{
		{"same", old, CBOR[v1]().Schema(), ""},
		{"swapped", old, CBOR[swapped]().Schema(), ""},
		{"wider", old, CBOR[wider]().Schema(), ""},
		{"added", old, CBOR[added]().Schema(), ""},
		{"removed", old, CBOR[removed]().Schema(), ""},
		{"renamed", old, CBOR[renamed]().Schema(),
			"incompatible schema (cbor):\n  F: bool -> (none) (looks renamed to G; remove and add in two steps, with a checkpoint between)"},
		{"changed", old, CBOR[changed]().Schema(),
			"incompatible schema (cbor):\n  A: int32 -> string\n  B[]: string -> int64\n  C: map -> list\n  D: *uint8 -> uint8\n  E: float32 -> int32"},
		{"narrower", old, CBOR[narrower]().Schema(), "incompatible schema (cbor):\n  A: int32 -> int16"},
		{"map key", CBOR[mapKeys1]().Schema(), CBOR[mapKeys2]().Schema(), "incompatible schema (cbor):\n  M{key}: int32 -> int64"},
		{"nested", CBOR[nested1]().Schema(), CBOR[nested2]().Schema(), "incompatible schema (cbor):\n  items[].price: int32 -> string"},
		{"root", CBOR[int64]().Schema(), CBOR[string]().Schema(), "incompatible schema (cbor):\n  (value): int64 -> string"},
		{"flat, another name of the type", For[order]().Schema(), For[named]().Schema(), ""},
		{"flat, int for int64", For[int64]().Schema(), For[int]().Schema(), ""},
		{"flat changed", For[order]().Schema(), For[flat2]().Schema(),
			"incompatible schema (flat):\n  Cents: int64 -> int32\n  More: (none) -> bool"},
		{"flat swapped", For[order]().Schema(), For[flatSwapped]().Schema(),
			"incompatible schema (flat):\n  ID: uint64 -> string (at another place: Customer stands here)\n  Customer: string -> uint64 (at another place: ID stands here)"},
		{"format", For[order]().Schema(), CBOR[order]().Schema(), "incompatible schema: written as flat, now cbor\n  (value): (none) -> struct"},
		{"text for bytes", Text().Schema(), Bytes().Schema(), "incompatible schema: written as text, now bytes"},
		{"version", Func[int]("m", 1, nil, nil).Schema(), Func[int]("m", 2, nil, nil).Schema(),
			"incompatible schema: written as m version 1, now version 2"},
		{"same version of another", Func[int]("m", 1, nil, nil).Schema(), Func[int]("n", 1, nil, nil).Schema(),
			"incompatible schema: written as m, now n"},
	} {
		err := Compatible(tt.old, tt.now)
		got := ""
		if err != nil {
			got = err.Error()
			if e := new(IncompatibleError); !errors.As(err, &e) {
				t.Errorf("%s: %T", tt.name, err)
			}
		}
		if got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, got, tt.want)
		}
	}
}

// What Compatible allows is then read with the right values.
func TestCompatibleChangesAreRead(t *testing.T) {
	type v1 struct {
		A int32
		B []string
		F float32
		X map[string]bool
		P bool
	}
	type v2 struct {
		P   *bool
		B   []string
		A   int64
		F   float64
		New []int
	}
	b, err := For[v1]().Append(nil, v1{-7, []string{"b"}, 1.5, map[string]bool{"x": true}, true})
	if err != nil {
		t.Fatal(err)
	}
	if err := Compatible(For[v1]().Schema(), For[v2]().Schema()); err != nil {
		t.Fatal(err)
	}
	got, err := For[v2]().Decode(b)
	yes := true
	if diff := cmp.Diff(v2{P: &yes, B: []string{"b"}, A: -7, F: 1.5}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	// Names match exactly, so a removed field does not end in a like one.
	type old struct{ ID []int }
	type now struct {
		Id    []int
		Other bool
	}
	b, _ = For[old]().Append(nil, old{[]int{1}})
	if v, err := For[now]().Decode(b); err != nil || v.Id != nil {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestWidens(t *testing.T) {
	for _, tt := range []struct {
		pairs string
		want  bool
	}{
		{"int8>int16 int8>int64 uint8>int16 uint32>int64 uint8>uint64 float32>float64 int8>*int8 *int8>*int16 string>*string int8>*int64", true},
		{"int64>int32 uint64>int64 uint32>int32 int8>uint16 float64>float32 int32>float64 *int8>int8 string>bytes list>[4]list bool>int8", false},
	} {
		for pair := range strings.FieldsSeq(tt.pairs) {
			a, b, _ := strings.Cut(pair, ">")
			if widens(a, b) != tt.want {
				t.Errorf("%s: %v", pair, !tt.want)
			}
		}
	}
}
