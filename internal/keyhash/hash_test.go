package keyhash

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata")

type (
	userID int32
	name   string
	pair   struct {
		Tenant uint16
		User   string
	}
	padded struct {
		A int8
		B int64
	}
	dense [4]uint32
)

var seeds = []uint64{0, 1, mul1, mul2, math.MaxUint64, 0x0123456789abcdef}

func vectors[K comparable](t *testing.T, w *bytes.Buffer, keys ...K) {
	t.Helper()
	for _, seed := range seeds {
		h, err := For[K](seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range keys {
			show := fmt.Sprintf("%#v", k)
			if len(show) > 60 {
				show = fmt.Sprintf("%.40s...(%d)", show, len(show))
			}
			fmt.Fprintf(w, "seed=%016x %T %s %016x\n", seed, k, show, h(k))
		}
	}
}

func TestHashNeverChanges(t *testing.T) {
	var got bytes.Buffer
	vectors[uint64](t, &got, 0, 1, 2, 1<<32, math.MaxUint64)
	vectors[int64](t, &got, 0, -1, math.MinInt64)
	vectors[int8](t, &got, -1, 127)
	vectors[userID](t, &got, -1, 42)
	vectors(t, &got, "", "a", "customer-17", strings.Repeat("x", 17), strings.Repeat("y", 300))
	vectors[name](t, &got, "a", "customer-17")
	vectors(t, &got, false, true)
	vectors(t, &got, pair{}, pair{1, "u"}, pair{7, strings.Repeat("z", 200)}, pair{7, strings.Repeat("z", 5000)})
	vectors(t, &got, padded{-1, 1 << 40})
	vectors(t, &got, dense{1, 2, 3, 4})
	vectors(t, &got, [2]string{"ab", "c"}, [2]string{"a", "bc"})

	const golden = "testdata/hash1.txt"
	if *rewrite {
		if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines(want), lines(got.Bytes())); diff != "" {
		t.Errorf("the hash changed, and no old checkpoint can be read (-want +got):\n%s", diff)
	}
}

func lines(b []byte) (ls []string) {
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		ls = append(ls, s.Text())
	}
	return ls
}

func TestIntegerTypesAgree(t *testing.T) {
	const seed = 99
	for _, x := range []int8{-128, -1, 0, 1, 127} {
		want := hash[int64](t, seed)(int64(x))
		got := []uint64{
			hash[int8](t, seed)(x), hash[int16](t, seed)(int16(x)), hash[int32](t, seed)(int32(x)),
			hash[int](t, seed)(int(x)), hash[userID](t, seed)(userID(x)),
		}
		if x >= 0 {
			got = append(got, hash[uint8](t, seed)(uint8(x)), hash[uint16](t, seed)(uint16(x)),
				hash[uint32](t, seed)(uint32(x)), hash[uint](t, seed)(uint(x)),
				hash[uint64](t, seed)(uint64(x)), hash[uintptr](t, seed)(uintptr(x)))
		}
		for i, g := range got {
			if g != want {
				t.Errorf("%d: type %d: %x, want %x", x, i, g, want)
			}
		}
	}
}

// Padding may hold anything; the hash must not see it.
func TestPaddingIsNotHashed(t *testing.T) {
	h := hash[padded](t, 1)
	want := h(padded{A: 3, B: 4})
	for i := range 256 {
		if got := h(dirtyPadding(byte(i))); got != want {
			t.Fatalf("padding %#x: %x, want %x", i, got, want)
		}
	}
}

func TestNoSeedCollapses(t *testing.T) {
	rnd, _ := random(t)
	all := append([]uint64{mul1 - 1, mul1 + 1, mul2 ^ mul1, ^uint64(mul1), ^uint64(mul2), -mul1 & math.MaxUint64}, seeds...)
	for range 50 {
		all = append(all, rnd.Uint64())
	}
	for _, seed := range all {
		h := hash[uint64](t, seed)
		a, b := whiten(seed)
		seen := map[uint64]uint64{}
		for _, x := range []uint64{0, 1, 2, a, b, a ^ 1, mul1, mul2, seed, ^seed, math.MaxUint64, 1 << 63} {
			y := h(x)
			if was, dup := seen[y]; dup && was != x {
				t.Errorf("seed %#x: %#x and %#x have one hash", seed, was, x)
			}
			seen[y] = x
		}
		if h(0) == 0 || h(a) == 0 {
			t.Errorf("seed %#x: a hash of 0", seed)
		}
	}
}

// A changed input bit changes each output bit about half of the time.
func TestIntegerHashAvalanches(t *testing.T) {
	rnd, _ := random(t)
	const rounds = 4000
	for _, seed := range seeds {
		h := hash[uint64](t, seed)
		var flips [64][64]int
		for range rounds {
			x := rnd.Uint64()
			for i := range 64 {
				for d := h(x) ^ h(x^1<<i); d != 0; d &= d - 1 {
					flips[i][bits.TrailingZeros64(d)]++
				}
			}
		}
		for i := range flips {
			for j, n := range flips[i] {
				if f := float64(n) / rounds; f < 0.42 || f > 0.58 {
					t.Errorf("seed %#x: input bit %d flips output bit %d in %.2f of cases", seed, i, j, f)
				}
			}
		}
	}
}

// Keys as they come in practice fill the ranges, and the low and high bits,
// evenly: chi-square over 1024 buckets stays near 1023 (sd 45).
func TestKeysSpreadEvenly(t *testing.T) {
	const n, buckets = 1 << 17, 1024
	for _, seed := range seeds {
		h, hs := hash[uint64](t, seed), hash[string](t, seed)
		for _, tt := range []struct {
			name string
			key  func(i uint64) uint64
		}{
			{"sequential", h},
			{"strided by 2^20", func(i uint64) uint64 { return h(i << 20) }},
			{"strided by 2^44", func(i uint64) uint64 { return h(i << 44) }},
			{"negative", func(i uint64) uint64 { return h(-i) }},
			{"multiples of 1000", func(i uint64) uint64 { return h(i * 1000) }},
			{"strings", func(i uint64) uint64 { return hs(fmt.Sprintf("customer-%d", i)) }},
		} {
			var high, low [buckets]int
			for i := range uint64(n) {
				y := tt.key(i)
				high[Owner(y, buckets)]++
				low[y%buckets]++
			}
			for _, c := range []struct {
				name   string
				counts [buckets]int
			}{{"high", high}, {"low", low}} {
				if x := chiSquare(c.counts[:], n); x > 1023+8*45 {
					t.Errorf("seed %#x, %s, %s bits: chi-square %.0f", seed, tt.name, c.name, x)
				}
			}
		}
	}
}

func chiSquare(counts []int, n int) (x float64) {
	want := float64(n) / float64(len(counts))
	for _, c := range counts {
		d := float64(c) - want
		x += d * d / want
	}
	return x
}

func TestBadKeyTypesAreRefused(t *testing.T) {
	refuse[float64](t, "float64: a key holds no floats")
	refuse[*int](t, "*int is not flat")
	refuse[any](t, "interface {} is not flat")
	refuse[chan int](t, "chan int is not flat")
	refuse[struct{ A [2]struct{ B float32 } }](t, "A[].B: float32")
	refuse[struct{ a int }](t, ".a: field is not exported")
	refuse[time.Time](t, ".wall: field is not exported")
}

func refuse[K comparable](t *testing.T, want string) {
	t.Helper()
	if _, err := For[K](0); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("For[%T]: %v, want %q", *new(K), err, want)
	}
}

func TestHashingAllocatesNothing(t *testing.T) {
	noAllocs(t, uint64(7))
	noAllocs(t, userID(7))
	noAllocs(t, strings.Repeat("k", 500))
	noAllocs(t, pair{1, "user"})
	noAllocs(t, pair{1, strings.Repeat("k", 4000)})
	noAllocs(t, padded{1, 2})
	noAllocs(t, dense{1, 2})
	noAllocs(t, true)
}

var sink uint64

func noAllocs[K comparable](t *testing.T, k K) {
	t.Helper()
	h := hash[K](t, 1)
	if n := testing.AllocsPerRun(100, func() { sink += h(k) }); n != 0 {
		t.Errorf("%T: %v allocations a key", k, n)
	}
}

func TestFuncIsForSeveralGoroutines(t *testing.T) {
	h := hash[pair](t, 1)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 1000 {
				k := pair{uint16(i), strings.Repeat("k", i)}
				if h(k) != h(k) {
					t.Error("hash differs from call to call")
				}
			}
		})
	}
	wg.Wait()
}

func hash[K comparable](t testing.TB, seed uint64) Func[K] {
	t.Helper()
	h, err := For[K](seed)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func random(t *testing.T) (*rand.Rand, uint64) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}

func BenchmarkUint64(b *testing.B) { bench(b, uint64(1234567)) }
func BenchmarkInt32(b *testing.B)  { bench(b, int32(1234567)) }
func BenchmarkString(b *testing.B) { bench(b, "customer-123") }
func BenchmarkPair(b *testing.B)   { bench(b, pair{3, "customer-123"}) }
func BenchmarkDense(b *testing.B)  { bench(b, dense{1, 2, 3, 4}) }

func bench[K comparable](b *testing.B, k K) {
	h := hash[K](b, 1)
	b.ReportAllocs()
	var x uint64
	for b.Loop() {
		x += h(k)
	}
	sink = x
}
