package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statestore"
)

// scope is a Scope over a store of its own, with string keys.
type scope struct {
	s      *statestore.Store
	keys   *statestore.Keyer[string]
	faults []error
}

func newScope() *scope {
	key, err := statestore.KeyOf[string]()
	if err != nil {
		panic(err)
	}
	s := statestore.New(statestore.Config{Range: checkpoint.HashRange{Hi: 1<<64 - 1}, Key: key, Now: func() int64 { return int64(time.Hour) }})
	keys, err := statestore.KeyerOf[string](s)
	if err != nil {
		panic(err)
	}
	return &scope{s: s, keys: keys}
}

func (sc *scope) DeclareState(d statestore.Decl) *statestore.Table {
	t, err := sc.s.Declare(d)
	if err != nil {
		sc.faults = append(sc.faults, err)
	}
	return t
}

func (sc *scope) key(k string) { sc.keys.Set(k, sc.keys.Hash(k)) }

type order struct {
	ID    string
	Cents int64
}

type basket struct {
	Orders []order
	At     time.Time
}

func TestEachKeyHasItsOwnState(t *testing.T) {
	sc := newScope()
	value := NewValue[order](sc, "value")
	coded := NewValue[basket](sc, "coded")
	list := NewList[string](sc, "list")
	m := NewMap[int32, order](sc, "map", TTL(time.Minute))
	most := NewReducing(sc, "most", func(a, b int) int { return max(a, b) })
	if len(sc.faults) > 0 {
		t.Fatal(sc.faults)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for i, k := range []string{"a", "b", "c"} {
		sc.key(k)
		if _, ok := value.Lookup(); ok || value.Get() != (order{}) || list.Len() != 0 || m.Len() != 0 || most.Get() != 0 {
			t.Fatalf("key %s is not empty at first", k)
		}
		value.Set(order{k, int64(i)})
		coded.Set(basket{[]order{{k, 1}, {k, 2}}, at})
		list.Append(k)
		list.Append("x", "y")
		for j := range int32(20) {
			m.Set(j, order{k, int64(j)})
		}
		most.Add(i)
		if got := most.Add(-1); got != i {
			t.Errorf("most %d, want %d", got, i)
		}
	}
	sc.key("b")
	value.Clear()
	coded.Clear()
	list.Set([]string{"z"})
	m.Delete(3)
	most.Clear()
	for i, k := range []string{"a", "b", "c"} {
		sc.key(k)
		v, ok := value.Lookup()
		b := coded.Get()
		n, some := most.Lookup()
		all := slices.Collect(list.All())
		sum := int64(0)
		for j, o := range m.All() {
			if o != m.Get(j) || o.ID != k {
				t.Errorf("key %s: map %d is %v", k, j, o)
			}
			sum += o.Cents
		}
		if k == "b" {
			if _, there := m.Lookup(3); ok || b.Orders != nil || some || !slices.Equal(all, []string{"z"}) || sum != 187 || m.Len() != 19 || there {
				t.Errorf("key b: %v %v %v %v %d %d", v, b, n, all, sum, m.Len())
			}
			continue
		}
		if !ok || v != (order{k, int64(i)}) || len(b.Orders) != 2 || !b.At.Equal(at) || n != i || !slices.Equal(all, []string{k, "x", "y"}) || sum != 190 {
			t.Errorf("key %s: %v %v %v %v %d", k, v, b, n, all, sum)
		}
		m.Clear()
		list.Clear()
		if m.Len()+list.Len() != 0 {
			t.Errorf("key %s: not cleared", k)
		}
	}
}

func TestFaultsAreReportedToTheScope(t *testing.T) {
	type secret struct{ n int }
	for name, tt := range map[string]struct {
		f    func(s Scope)
		want []string
	}{
		"lossy value":    {func(s Scope) { NewValue[secret](s, "v") }, []string{`state "v"`, "would lose data", "n"}},
		"lossy element":  {func(s Scope) { NewList[func()](s, "l") }, []string{`state "l"`, "would lose data"}},
		"key of a map":   {func(s Scope) { NewMap[float64, int](s, "m") }, []string{`state "m"`, "no key of a map"}},
		"foreign codec":  {func(s Scope) { NewValue[int](s, "v", Codec(codec.Text())) }, []string{`state "v"`, "not for values of type int"}},
		"no name":        {func(s Scope) { NewValue[int](s, "") }, []string{"needs a name"}},
		"negative TTL":   {func(s Scope) { NewValue[int](s, "v", TTL(-1)) }, []string{`state "v"`, "TTL"}},
		"declared twice": {func(s Scope) { NewValue[int](s, "v"); NewList[int](s, "v") }, []string{`state "v" is declared twice`}},
		"a codec is used": {func(s Scope) {
			NewValue[secret](s, "v", Codec(codec.Func("secret", 1, encodeSecret[secret], decodeSecret[secret])))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newScope()
			tt.f(sc)
			got := fmt.Sprint(sc.faults)
			if len(sc.faults) == 0 != (tt.want == nil) {
				t.Fatalf("faults %v", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("%s does not say %q", got, want)
				}
			}
		})
	}
}

func encodeSecret[T any](dst []byte, _ T) ([]byte, error) { return dst, nil }
func decodeSecret[T any]([]byte) (v T, err error)         { return v, nil }

func TestGetAndSetAllocateNothing(t *testing.T) {
	sc := newScope()
	count := NewValue[int64](sc, "count")
	last := NewValue[order](sc, "last")
	keys := []string{"a", "customer-17", "customer-18"}
	i := 0
	step := func() {
		sc.key(keys[i%len(keys)])
		count.Set(count.Get() + 1)
		o := last.Get()
		o.ID, o.Cents = keys[i%len(keys)], o.Cents+1
		last.Set(o)
		i++
	}
	for range 10 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
