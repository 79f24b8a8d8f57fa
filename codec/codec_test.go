package codec

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type (
	order struct {
		ID       uint64
		Customer string
		Cents    int64
	}
	item struct {
		SKU   string `json:"sku"`
		Price int32  `json:"price"`
		Tags  []string
	}
	basket struct {
		ID     string
		At     time.Time
		Items  []item `json:"items"`
		ByName map[string]item
		Note   *string
		Raw    []byte
		Grid   [2][3]uint8
		Ratio  float64
		Small  float32
		Big    uint64
		On     bool
		Addr   netip.Addr
		Base
		hidden
		_ [3]byte
	}
	Base struct {
		Created int64
		Labels  map[int32]string
	}
	hidden struct{ Shown []uint16 }
	// amount has a codec of its own for its unexported fields.
	amount struct {
		units int64
		nanos int32
	}
	wallet struct {
		Amounts []amount
		Main    *amount
	}
	level  int // encodes as text
	levels struct {
		All []level
		By  map[level]string
	}
	keyed struct {
		ByPair map[[2]string]int
		ByKey  map[order]string
		ByAddr map[netip.Addr]int
		ByBool map[bool]int8
	}
)

func (a amount) MarshalBinary() ([]byte, error) {
	return fmt.Appendf(nil, "%d %d", a.units, a.nanos), nil
}

func (a *amount) UnmarshalBinary(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%d %d", &a.units, &a.nanos)
	return err
}

func (l level) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "L%d", int(l)), nil }
func (l *level) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "L%d", (*int)(l))
	return err
}

var compare = cmp.Options{
	cmp.AllowUnexported(amount{}, basket{}, hidden{}),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b big.Int) bool { return a.Cmp(&b) == 0 }),
	cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }),
}

func roundTrip[T any](t *testing.T, c Codec[T], v T) {
	t.Helper()
	b, err := c.Append([]byte("head"), v)
	if err != nil {
		t.Errorf("append %T: %v", v, err)
		return
	}
	if string(b[:4]) != "head" {
		t.Errorf("%T: Append changed what was before", v)
	}
	again, _ := c.Append(nil, v)
	if string(again) != string(b[4:]) {
		t.Errorf("%T: encoded differently the second time", v)
	}
	got, err := c.Decode(again)
	if err != nil {
		t.Errorf("decode %T: %v", v, err)
		return
	}
	clear(again) // the codec may have kept nothing of it
	if diff := cmp.Diff(v, got, compare); diff != "" {
		t.Errorf("%T (-want +got):\n%s", v, diff)
	}
}

func TestForRoundTrips(t *testing.T) {
	zone := time.FixedZone("", 5400)
	note := "n"
	roundTrip(t, For[uint64](), 1<<63)
	roundTrip(t, For[string](), "a\xffb")
	roundTrip(t, For[order](), order{1, "c", -5})
	roundTrip(t, For[[3]order](), [3]order{2: {ID: 7}})
	roundTrip(t, For[complex128](), 1+2i)
	roundTrip(t, For[struct{}](), struct{}{})
	roundTrip(t, For[[]int64](), []int64{1, -2})
	roundTrip(t, For[[]int64](), nil)
	roundTrip(t, For[[]int64](), []int64{})
	roundTrip(t, For[[]byte](), []byte{0, 255})
	roundTrip(t, For[map[string]int](), map[string]int{"a": 1, "\xfe": 2})
	roundTrip(t, For[*int](), nil)
	roundTrip(t, For[*order](), &order{ID: 3})
	roundTrip(t, For[time.Time](), time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC))
	roundTrip(t, For[time.Time](), time.Date(1969, 1, 2, 3, 4, 5, 1, zone))
	roundTrip(t, For[time.Time](), time.Time{})
	roundTrip(t, For[big.Int](), *new(big.Int).Lsh(big.NewInt(-3), 200))
	roundTrip(t, For[url.URL](), url.URL{Scheme: "https", Host: "h", Path: "/p"})
	roundTrip(t, For[basket](), basket{})
	roundTrip(t, For[basket](), basket{
		ID: "b\xff", At: time.Unix(1, 999999999).UTC(), Items: []item{{"s", 5, []string{"x"}}, {Tags: []string{}}},
		ByName: map[string]item{"k": {SKU: "z"}}, Note: &note, Raw: []byte{1}, Grid: [2][3]uint8{{1}, {2}},
		Ratio: math.Float64frombits(0x7ff8000000000123), Small: 0.1, Big: math.MaxUint64, On: true,
		Addr: netip.MustParseAddr("10.0.0.1"), Base: Base{5, map[int32]string{-1: "m"}}, hidden: hidden{[]uint16{9}},
	})
	roundTrip(t, For[wallet](), wallet{[]amount{{1, 2}, {-3, 4}}, &amount{5, 6}})
	roundTrip(t, For[levels](), levels{[]level{1, 2}, map[level]string{3: "c"}})
	roundTrip(t, For[keyed](), keyed{
		map[[2]string]int{{"a", "bc"}: 1, {"ab", "c"}: 2}, map[order]string{{1, "c", 2}: "o"},
		map[netip.Addr]int{netip.MustParseAddr("::1"): 1}, map[bool]int8{true: -1},
	})
	// More than the decoder's default bound.
	roundTrip(t, For[[]uint32](), make([]uint32, 200_000))
}

func TestOtherCodecsRoundTrip(t *testing.T) {
	roundTrip(t, CBOR[order](), order{1, "c", -5})
	roundTrip(t, JSON[order](), order{1, "<c&d>", -5})
	roundTrip(t, JSON[item](), item{"s", 1, []string{"t"}})
	roundTrip(t, Text(), "a\xff")
	roundTrip(t, Bytes(), []byte{1, 2})
	roundTrip(t, Bytes(), []byte{})
}

func TestRandomValuesRoundTrip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	f, c, j := For[order](), For[Base](), JSON[order]()
	for range 300 {
		text := make([]byte, rnd.IntN(300))
		for i := range text {
			text[i] = byte(rnd.Uint32())
		}
		o := order{rnd.Uint64(), string(text), int64(rnd.Uint64())}
		roundTrip(t, f, o)
		o.Customer = strings.ToValidUTF8(o.Customer, "?")
		roundTrip(t, j, o)
		b := Base{Created: int64(rnd.Uint64()), Labels: map[int32]string{}}
		for range rnd.IntN(20) {
			b.Labels[int32(rnd.Uint32())] = o.Customer
		}
		roundTrip(t, c, b)
	}
}

func TestGoldenEncodings(t *testing.T) {
	golden(t, For[order](), order{1, "c", -5}, "0100000000000000"+"0163"+"fbffffffffffffff")
	golden(t, CBOR[order](), order{1, "c", -5}, "a3"+"624944"+"01"+"6543656e7473"+"24"+"68437573746f6d6572"+"6163")
	golden(t, For[[]bool](), []bool{true}, "81f5")
	golden(t, For[time.Time](), time.Unix(0, 1).UTC(), "781e"+hex.EncodeToString([]byte("1970-01-01T00:00:00.000000001Z")))
	golden(t, JSON[order](), order{1, "<&>", -5}, hex.EncodeToString([]byte(`{"ID":1,"Customer":"<&>","Cents":-5}`)))
	golden(t, Text(), "ab", "6162")
}

func golden[T any](t *testing.T, c Codec[T], v T, want string) {
	t.Helper()
	b, err := c.Append(nil, v)
	if got := hex.EncodeToString(b); err != nil || got != want {
		t.Errorf("%T: %s, %v; want %s", v, got, err, want)
	}
}

func TestTrailingAndShortInputIsRefused(t *testing.T) {
	strict(t, For[order](), order{1, "c", 5})
	strict(t, CBOR[order](), order{1, "c", 5})
	strict(t, For[basket](), basket{ID: "x", Items: []item{{}}})
	strict(t, JSON[order](), order{1, "c", 5})
}

func strict[T any](t *testing.T, c Codec[T], v T) {
	t.Helper()
	b, err := c.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		if _, err := c.Decode(b[:i:i]); err == nil {
			t.Fatalf("%T: %d of %d bytes decode", v, i, len(b))
		}
	}
	if _, err := c.Decode(append(b, b...)); err == nil {
		t.Errorf("%T: trailing bytes decode", v)
	}
}

// A time that RFC 3339 cannot say fails when it is written, not when it is read.
func TestFarTimesFailOnAppend(t *testing.T) {
	if _, err := For[time.Time]().Append(nil, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Error("the year 10000 was encoded")
	}
}

func TestForOfLossyTypeFailsAtEachCall(t *testing.T) {
	type lossy struct{ a int }
	c := For[lossy]()
	want := Check[lossy]()
	if b, err := c.Append([]byte("x"), lossy{1}); err == nil || err.Error() != want.Error() || string(b) != "x" {
		t.Errorf("Append: %q, %v", b, err)
	}
	if _, err := c.Decode([]byte{0xa0}); err == nil || err.Error() != want.Error() {
		t.Errorf("Decode: %v", err)
	}
}

func TestAppendOfFlatTypesAllocatesNothing(t *testing.T) {
	c := For[order]()
	buf := make([]byte, 0, 100)
	v := order{1, "customer", 5}
	if n := testing.AllocsPerRun(100, func() { buf, _ = c.Append(buf[:0], v) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	n := For[uint64]()
	b, _ := n.Append(nil, 5)
	if n := testing.AllocsPerRun(100, func() { _, _ = n.Decode(b) }); n != 0 {
		t.Errorf("Decode: %v allocations", n)
	}
}

func TestCodecsAreForSeveralGoroutines(t *testing.T) {
	c, f := For[basket](), For[order]()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 200 {
				v := basket{ID: fmt.Sprint(g, i), Items: []item{{SKU: fmt.Sprint(i)}}}
				b, err := c.Append(nil, v)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := c.Decode(b); err != nil || !reflect.DeepEqual(got, v) {
					t.Errorf("%+v, %v", got, err)
				}
				o := order{Customer: v.ID}
				b, _ = f.Append(b[:0], o)
				if got, err := f.Decode(b); err != nil || got != o {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestFuncRefusesReservedFormats(t *testing.T) {
	for _, format := range []string{"", "flat", "cbor", "json", "text", "bytes"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("format %q was taken", format)
				}
			}()
			Func[int](format, 1, nil, nil)
		}()
	}
}

func BenchmarkForFlatAppend(b *testing.B) {
	c := For[order]()
	buf := make([]byte, 0, 100)
	v := order{1, "customer-123", 5}
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = c.Append(buf[:0], v)
	}
}

func BenchmarkForCBORAppend(b *testing.B) {
	c := CBOR[order]()
	buf := make([]byte, 0, 100)
	v := order{1, "customer-123", 5}
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = c.Append(buf[:0], v)
	}
}
