package keyhash

import "testing"

// Keys hash to the same whether one by one or many at a time.
func TestAllAgreesWithFor(t *testing.T) {
	allAgrees(t, []uint64{0, 1, 1 << 63, 0x9e3779b97f4a7c15})
	allAgrees(t, []int64{0, -1, 1 << 62})
	allAgrees(t, []int{0, -1, 7})
	allAgrees(t, []uintptr{0, 9})
	allAgrees(t, []int32{0, -1, 7})
	allAgrees(t, []uint8{0, 255})
	allAgrees(t, []bool{true, false})
	allAgrees(t, []string{"", "a", "cust-0000001", "a longer key, of more than sixteen bytes"})
	allAgrees(t, [][8]byte{{}, {1, 2, 3}})
	type pair struct {
		Name string
		N    uint16
	}
	allAgrees(t, []pair{{}, {"a", 1}, {"b", 2}})
}

func allAgrees[K comparable](t *testing.T, keys []K) {
	t.Helper()
	for _, seed := range []uint64{0, 42, 1<<64 - 1} {
		one, err := For[K](seed)
		if err != nil {
			t.Fatal(err)
		}
		all, err := All[K](seed)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]uint64, len(keys))
		all(got, keys)
		for i, k := range keys {
			if want := one(k); got[i] != want {
				t.Errorf("seed %d, key %v of type %T: %x, want %x", seed, k, k, got[i], want)
			}
		}
		all(nil, nil)
	}
}
