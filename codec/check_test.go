package codec

import (
	"net/netip"
	"testing"
	"time"
	"unsafe"
)

type (
	tree     struct{ Kids []tree }
	node     struct{ Next *node }
	halfText int
	stamped  struct {
		time.Time
		Value int
	}
	onlyTime struct{ time.Time }
)

func (halfText) MarshalText() ([]byte, error) { return nil, nil }

func TestCheckNamesEveryFault(t *testing.T) {
	type line struct {
		price int
		Any   any
	}
	type Order struct {
		Items   []line `json:"items"`
		By      map[string]func()
		Key     map[float64]int
		Ch      chan int
		Ptr     unsafe.Pointer
		Hidden  []int `json:"-"`
		Dropped []int `cbor:"-"`
		Kept    []int `json:"-" cbor:"kept"`
		Word    uintptr
		Cplx    []complex64
		Half    []halfText
		PP      **int
		PS      *[]int
		PT      *time.Time
		One     []int `cbor:"same"`
		Two     []int `cbor:"same"`
		Stamp   []stamped
		_       int
	}
	want := `codec.Order.items[].price: field is not exported, and codec.line has no MarshalBinary
codec.Order.items[].Any: interface {} cannot be stored
codec.Order.By{}: func() cannot be stored
codec.Order.Key{key}: float64: a map key holds only integers, strings, bools, arrays and structs of these
codec.Order.Ch: chan int cannot be stored
codec.Order.Ptr: unsafe.Pointer cannot be stored
codec.Order.Hidden: the tag json:"-" would leave it out; add a tag cbor:"name" to keep it or cbor:"-" to drop it
codec.Order.Word: uintptr cannot be stored
codec.Order.Cplx[]: complex64 cannot be stored
codec.Order.Half[]: codec.halfText has MarshalText but no UnmarshalText, and could not be read back
codec.Order.PP: a pointer to a pointer: which of them is nil would be lost
codec.Order.PS: *[]int: nil and a pointer to nil could not be told apart
codec.Order.PT: *time.Time: nil and a pointer to the zero time could not be told apart; use time.Time and IsZero
codec.Order.same: two fields are encoded by this name: One and Two
codec.Order.Stamp[]: codec.stamped embeds time.Time, whose MarshalBinary would stand for the whole struct; give the field a name`
	if err := Check[Order](); err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"flat", Check[order](), ""},
		{"basket", Check[basket](), ""},
		{"own encoding", Check[wallet](), ""},
		{"time", Check[time.Time](), ""},
		{"embedded time alone", Check[onlyTime](), ""},
		{"map keys", Check[keyed](), ""},
		{"flat with json tag", Check[struct {
			A int `json:"-"`
		}](), ""},
		{"mutable interface", Check[any](), "interface {}: interface {} cannot be stored"},
		{"tree", Check[tree](), "codec.tree.Kids[]: codec.tree contains itself: a cyclic value could not be encoded, nor a very deep one read back"},
		{"list", Check[node](), "codec.node.Next: codec.node contains itself: a cyclic value could not be encoded, nor a very deep one read back"},
		{"embedded pointer", Check[struct{ *Base }](), "struct { *codec.Base }.Base: an embedded pointer: nil and a pointer to an empty struct could not be told apart; give the field a name"},
		{"shadowed", Check[struct {
			Base
			Labels []int
		}](), "struct { codec.Base; Labels []int }.Labels: two fields are encoded by this name: Labels and Labels"},
		{"positions", Check[struct {
			_ struct{} `cbor:",toarray"`
			A []int
		}](), "struct { _ struct {} \"cbor:\\\",toarray\\\"\"; A []int }: the cbor option toarray goes by position; fields could be neither added nor removed"},
		{"key", CheckKey[order](), ""},
		{"array key", CheckKey[[2]string](), ""},
		{"float key", CheckKey[struct{ A float32 }](), "struct { A float32 }.A: float32: a key holds no floats"},
		{"interface key", CheckKey[any](), "interface {}: interface {} is not flat"},
		{"pointer key", CheckKey[*int](), "*int: *int is not flat"},
		{"channel key", CheckKey[chan int](), "chan int: chan int is not flat"},
		{"address key", CheckKey[struct{ A netip.Addr }](), "struct { A netip.Addr }.A.addr: field is not exported\nstruct { A netip.Addr }.A.z: field is not exported"},
	} {
		got := ""
		if tt.err != nil {
			got = tt.err.Error()
		}
		if got != tt.want {
			t.Errorf("%s:\n%s\nwant:\n%s", tt.name, got, tt.want)
		}
	}
}
