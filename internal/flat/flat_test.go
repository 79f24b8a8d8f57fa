package flat

import (
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

type (
	colour uint8
	inner  struct {
		On    bool
		Price int32
		Name  string
	}
	mixed struct {
		A int8
		B int64
		C bool
		D bool
		E string
		F float32
		G [3]inner
		H uint16
		I [9]inner
		J int
		K uint
		L uintptr
		M complex64
		N [5]bool
		O colour
		P struct{}
		Q [0]string
	}
	denseOrder struct {
		ID    uint64
		Cents int64
		Lines [4]uint32
		OK    [8]bool
	}
	blank struct {
		A uint32
		_ uint32
		B uint64
	}
	long struct {
		Rows [1000]struct {
			A bool
			B int16
			C string
		}
	}
)

func layout[T any](t testing.TB) *Layout {
	t.Helper()
	l, err := Of(reflect.TypeFor[T]())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func encode[T any](t testing.TB, v T) []byte { return layout[T](t).Append(nil, unsafe.Pointer(&v)) }

func TestGoldenEncodings(t *testing.T) {
	check(t, true, "01")
	check(t, int8(-2), "fe")
	check(t, uint16(0x1234), "3412")
	check(t, int32(-1), "ffffffff")
	check(t, int(-1), "ffffffffffffffff")
	check(t, uint(1), "0100000000000000")
	check(t, uintptr(258), "0201000000000000")
	check(t, int64(math.MinInt64), "0000000000000080")
	check(t, float32(1), "0000803f")
	check(t, float64(-2), "00000000000000c0")
	check(t, complex(float32(1), 2), "0000803f00000040")
	check(t, "", "00")
	check(t, "añ", "0361c3b1")
	check(t, strings.Repeat("a", 128), "8001"+strings.Repeat("61", 128))
	check(t, colour(7), "07")
	check(t, [2]string{"a", "bc"}, "0161026263")
	check(t, inner{true, 5, "x"}, "01050000000178")
	check(t, [2]inner{{true, 1, "x"}, {false, 2, ""}}, "0101000000017800"+"0200000000")
	check(t, [5]inner{4: {Name: "z"}}, strings.Repeat("000000000000", 4)+"0000000000017a")
	check(t, blank{A: 1, B: 2}, "010000000200000000000000")
	check(t, struct{}{}, "")
	check(t, struct {
		A int8
		B int
		C bool
	}{1, -1, true}, "01ffffffffffffffff01")
}

func check[T comparable](t *testing.T, v T, want string) {
	t.Helper()
	l := layout[T](t)
	b := l.Append([]byte("x"), unsafe.Pointer(&v))
	if got := hex.EncodeToString(b[1:]); got != want {
		t.Errorf("%T %v: %s, want %s", v, v, got, want)
	}
	if n := l.Width(unsafe.Pointer(&v)); n != len(b)-1 {
		t.Errorf("%T: width %d of %d bytes", v, n, len(b)-1)
	}
	var back T
	if err := l.Decode(b[1:], unsafe.Pointer(&back)); err != nil || back != v {
		t.Errorf("%T: decoded %v, %v; want %v", v, back, err, v)
	}
}

func TestLayout(t *testing.T) {
	str := unsafe.Sizeof("")
	word := unsafe.Sizeof(uintptr(0))
	for _, tt := range []struct {
		of      reflect.Type
		fixed   int
		dense   bool
		floats  bool
		strings []uintptr
	}{
		{reflect.TypeFor[uint64](), 8, true, false, nil},
		{reflect.TypeFor[int](), 8, word == 8, false, nil},
		{reflect.TypeFor[bool](), 1, true, false, nil},
		{reflect.TypeFor[float64](), 8, true, true, nil},
		{reflect.TypeFor[denseOrder](), 40, true, false, nil},
		{reflect.TypeFor[blank](), 12, false, false, nil},
		{reflect.TypeFor[struct {
			A int8
			B int64
		}](), 9, false, false, nil},
		{reflect.TypeFor[struct {
			B int32
			A int8
		}](), 5, false, false, nil},
		{reflect.TypeFor[struct{}](), 0, true, false, nil},
		{reflect.TypeFor[string](), -1, false, false, []uintptr{0}},
		{reflect.TypeFor[[3]string](), -1, false, false, []uintptr{0, str, 2 * str}},
		{reflect.TypeFor[[5]struct{ A, B string }](), -1, false, false,
			[]uintptr{0, str, 2 * str, 3 * str, 4 * str, 5 * str, 6 * str, 7 * str, 8 * str, 9 * str}},
	} {
		l, err := Of(tt.of)
		if err != nil {
			t.Errorf("%s: %v", tt.of, err)
			continue
		}
		if l.Size != tt.of.Size() || l.Align != uintptr(tt.of.Align()) || l.Fixed != tt.fixed ||
			l.Dense != tt.dense || l.Floats != tt.floats || !reflect.DeepEqual(l.Strings, tt.strings) {
			t.Errorf("%s: %+v", tt.of, l)
		}
	}
}

func TestFieldsNameTheLeaves(t *testing.T) {
	want := []Field{
		{"A", "int8"}, {"B", "int64"}, {"C", "bool"}, {"D", "bool"}, {"E", "string"}, {"F", "float32"},
		{"G", "[3]struct"}, {"G[].On", "bool"}, {"G[].Price", "int32"}, {"G[].Name", "string"},
		{"H", "uint16"},
		{"I", "[9]struct"}, {"I[].On", "bool"}, {"I[].Price", "int32"}, {"I[].Name", "string"},
		{"J", "int64"}, {"K", "uint64"}, {"L", "uint64"}, {"M", "complex64"}, {"N", "[5]bool"}, {"O", "uint8"},
		{"P", "struct{}"}, {"Q", "[0]string"},
	}
	if diff := cmp.Diff(want, layout[mixed](t).Fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Field{{"", "[2][3]uint8"}}, layout[[2][3]byte](t).Fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLongArraysAreLoops(t *testing.T) {
	if l := layout[long](t); len(l.enc) != 1 || len(l.Strings) != 1000 {
		t.Errorf("%d steps, %d strings", len(l.enc), len(l.Strings))
	}
	if l := layout[[1 << 20]struct{ A, B bool }](t); len(l.enc) != 1 || len(l.dec) != 1 || !l.Dense {
		t.Errorf("%d and %d steps, dense %v", len(l.enc), len(l.dec), l.Dense)
	}
}

func TestEveryFaultIsNamed(t *testing.T) {
	type bad struct {
		A []int
		B [2]struct{ C map[string]int }
		d int
		E *int
		F any
		G func()
		H chan int
		I unsafe.Pointer
		J time.Time
	}
	_, err := Of(reflect.TypeFor[bad]())
	want := `flat.bad.A: []int is not flat
flat.bad.B[].C: map[string]int is not flat
flat.bad.d: field is not exported
flat.bad.E: *int is not flat
flat.bad.F: interface {} is not flat
flat.bad.G: func() is not flat
flat.bad.H: chan int is not flat
flat.bad.I: unsafe.Pointer is not flat
flat.bad.J.wall: field is not exported
flat.bad.J.ext: field is not exported
flat.bad.J.loc: field is not exported`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	if _, err := Of(reflect.TypeFor[[MaxSize + 1]byte]()); err == nil {
		t.Error("an oversize type is flat")
	}
	_, err = OfKey(reflect.TypeFor[mixed]())
	if want := "flat.mixed.F: float32: a key holds no floats\nflat.mixed.M: complex64: a key holds no floats"; err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestRandomValuesRoundTrip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		roundTrip[mixed](t, rnd)
		roundTrip[[2]mixed](t, rnd)
		roundTrip[denseOrder](t, rnd)
		roundTrip[inner](t, rnd)
		roundTrip[string](t, rnd)
		roundTrip[blank](t, rnd)
		roundTrip[[7][2]struct {
			A bool
			B [3]string
			C uint16
		}](t, rnd)
	}
	for range 5 {
		roundTrip[long](t, rnd)
	}
}

// roundTrip also decodes every shorter input and one byte more.
func roundTrip[T comparable](t *testing.T, rnd *rand.Rand) {
	t.Helper()
	var v T
	fill(rnd, reflect.ValueOf(&v).Elem())
	l := layout[T](t)
	b := l.Append(nil, unsafe.Pointer(&v))
	if n := l.Width(unsafe.Pointer(&v)); n != len(b) {
		t.Fatalf("%T: width %d of %d bytes", v, n, len(b))
	}
	if l.Fixed >= 0 && len(b) != l.Fixed {
		t.Fatalf("%T: %d bytes, fixed are %d", v, len(b), l.Fixed)
	}
	var back T
	in := append([]byte{}, b...)
	if err := l.Decode(in, unsafe.Pointer(&back)); err != nil {
		t.Fatal(err)
	}
	clear(in) // nothing of the input may be kept
	if back != v {
		t.Fatalf("%T:\n%+v\nwant\n%+v", v, back, v)
	}
	var scratch T
	for i := 0; i < len(b); i += 1 + len(b)/50 {
		if err := l.Decode(b[:i:i], unsafe.Pointer(&scratch)); !errors.Is(err, ErrMalformed) {
			t.Fatalf("%T: %d of %d bytes: %v", v, i, len(b), err)
		}
	}
	if err := l.Decode(append(b, 0), unsafe.Pointer(&scratch)); !errors.Is(err, ErrMalformed) {
		t.Fatalf("%T: a byte too much: %v", v, err)
	}
}

// fill sets v to a random value without NaNs, which are not equal to themselves.
func fill(rnd *rand.Rand, v reflect.Value) {
	switch {
	case v.CanInt():
		v.SetInt(int64(rnd.Uint64() >> rnd.UintN(64)))
	case v.CanUint():
		v.SetUint(rnd.Uint64() >> rnd.UintN(64))
	case v.CanFloat():
		v.SetFloat(rnd.NormFloat64())
	case v.CanComplex():
		v.SetComplex(complex(rnd.NormFloat64(), rnd.NormFloat64()))
	case v.Kind() == reflect.Bool:
		v.SetBool(rnd.IntN(2) == 1)
	case v.Kind() == reflect.String:
		b := make([]byte, rnd.IntN(1<<rnd.IntN(9)))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		v.SetString(string(b))
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(rnd, v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(rnd, v.Field(i))
			}
		}
	}
}

func TestNaNKeepsItsBits(t *testing.T) {
	v := math.Float64frombits(0x7ff8000000000123)
	b := encode(t, v)
	var back float64
	if err := layout[float64](t).Decode(b, unsafe.Pointer(&back)); err != nil || math.Float64bits(back) != math.Float64bits(v) {
		t.Errorf("%x, %v", math.Float64bits(back), err)
	}
}

func TestMalformedInputIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		decode func([]byte) error
		in     string
		want   string
	}{
		{"bool of 2", decodeTo[bool](t), "02", "bool is 2"},
		{"bool of 2 in a dense struct", decodeTo[denseOrder](t), strings.Repeat("00", 39) + "02", "bool is 2"},
		{"short", decodeTo[uint32](t), "000000", "takes 4 bytes, not 3"},
		{"long", decodeTo[uint32](t), "0000000000", "takes 4 bytes, not 5"},
		{"bytes after a string", decodeTo[string](t), "016161", "ends at byte 2 of 3"},
		{"no length", decodeTo[string](t), "", "no string length"},
		{"unfinished length", decodeTo[string](t), "80", "no string length"},
		{"length of more than 64 bits", decodeTo[string](t), "ffffffffffffffffffff01", "no string length"},
		{"length in long form", decodeTo[string](t), "818000" + "61", "not in its shortest form"},
		{"zero in long form", decodeTo[string](t), "8000", "not in its shortest form"},
		{"length past the end", decodeTo[string](t), "0261", "takes 2 bytes, 1 are left"},
		{"huge length", decodeTo[string](t), "ffffffffffffffffff01", "bytes, 0 are left"},
		{"inside a struct", decodeTo[inner](t), "0105000000", "at byte 5"},
	} {
		in, err := hex.DecodeString(tt.in)
		if err != nil {
			t.Fatal(err)
		}
		err = tt.decode(in)
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func decodeTo[T any](t *testing.T) func([]byte) error {
	l := layout[T](t)
	return func(b []byte) error { var v T; return l.Decode(b, unsafe.Pointer(&v)) }
}

// An int of 64 bits does not fit one of 32: an error, never another value.
func TestWordOverflowIsRefused(t *testing.T) {
	for _, tt := range []struct {
		op op
		in string
		ok bool
	}{
		{wideInt, "ffffff7f00000000", true},
		{wideInt, "00000080ffffffff", true},
		{wideInt, "0000008000000000", false},
		{wideInt, "ffffff7fffffffff", false},
		{wideUint, "ffffffff00000000", true},
		{wideUint, "0000000001000000", false},
	} {
		in, _ := hex.DecodeString(tt.in)
		var v uint32
		l := &Layout{Type: reflect.TypeFor[uint32](), Fixed: 8, dec: []step{{op: tt.op}}, enc: []step{{op: tt.op}}}
		err := l.Decode(in, unsafe.Pointer(&v))
		if (err == nil) != tt.ok {
			t.Errorf("%d %s: %v", tt.op, tt.in, err)
		}
		if tt.ok {
			if got := hex.EncodeToString(l.Append(nil, unsafe.Pointer(&v))); got != tt.in {
				t.Errorf("%d: %s, want %s", tt.op, got, tt.in)
			}
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	v := mixed{E: "some string", G: [3]inner{{Name: "x"}}}
	l := layout[mixed](t)
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { buf = l.Append(buf[:0], unsafe.Pointer(&v)) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
