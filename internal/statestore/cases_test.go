package statestore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage/memstore"
)

// States declared while a snapshot is written are not in it.
//
// Red: Declare added the state to the live snapshots.
func TestCase_C01(t *testing.T) {
	s := New(Config{Range: everything, Key: must(KeyOf[uint64]())})
	kr := must(KeyerOf[uint64](s))
	store := memstore.New()
	for i := 1; i <= 10; i++ {
		tb := must(s.Declare(Decl{Name: fmt.Sprintf("s%d", i), Kind: checkpoint.ValueState, Value: must(ValueOf[int](nil))}))
		kr.Set(uint64(i), kr.Hash(uint64(i)))
		Set(tb, i)
		s.EndKey()
		sn := snapshotOf(t, s, uint64(i))
		gate, done := make(chan struct{}), make(chan error)
		ctx := context.Background()
		var acks []checkpoint.StateAck
		go func() {
			<-gate
			var err error
			acks, err = sn.Write(ctx, testPacker(ctx, store, fmt.Sprintf("c%d", i)))
			done <- err
		}()
		// The next state is declared and written while the snapshot is held.
		late := must(s.Declare(Decl{Name: fmt.Sprintf("late%d", i), Kind: checkpoint.ValueState, Value: must(ValueOf[int](nil))}))
		close(gate)
		kr.Set(1, kr.Hash(1))
		Set(late, 1)
		s.EndKey()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		sn.Release()
		if want := 2*i - 1; len(acks) != want {
			t.Fatalf("snapshot %d has %d states, want %d", i, len(acks), want)
		}
		manifests, objects := manifest(s, acks)
		r := New(Config{Range: everything, Key: must(KeyOf[uint64]())})
		for j := 1; j <= i; j++ {
			must(r.Declare(Decl{Name: fmt.Sprintf("s%d", j), Kind: checkpoint.ValueState, Value: must(ValueOf[int](nil))}))
		}
		if err := r.Restore(ctx, store, manifests, objects); err != nil {
			t.Fatal(err)
		}
		rk := must(KeyerOf[uint64](r))
		for j := 1; j <= i; j++ {
			rk.Set(uint64(j), rk.Hash(uint64(j)))
			if v, ok := Get[int](r.Table(fmt.Sprintf("s%d", j))); !ok || v != j {
				t.Fatalf("snapshot %d: state s%d is %d, %v", i, j, v, ok)
			}
		}
	}
}

// scratchCodec has a buffer of its own: two goroutines must not be in it at once.
type scratchCodec struct{ buf []byte }

func (c *scratchCodec) Append(dst []byte, v []int) ([]byte, error) {
	c.buf = c.buf[:0]
	for _, n := range v {
		c.buf = append(c.buf, byte(n))
	}
	return append(dst, c.buf...), nil
}

func (c *scratchCodec) Decode(b []byte) (v []int, err error) {
	c.buf = append(c.buf[:0], b...)
	for _, n := range c.buf {
		v = append(v, int(n))
	}
	return v, nil
}

func (c *scratchCodec) Schema() codec.Schema { return codec.Schema{Format: "scratch"} }

// A codec with a buffer of its own is never in use by two goroutines.
//
// Red: the snapshot's reader called the codec.
func TestCase_C02(t *testing.T) {
	const keys, updates, every = 500, 100_000, 2_000
	decl := func() Decl {
		return Decl{Name: "v", Kind: checkpoint.ValueState, Value: must(ValueOf[[]int](&scratchCodec{}))}
	}
	s := New(Config{Range: everything, Key: must(KeyOf[uint64]())})
	tb := must(s.Declare(decl()))
	kr := must(KeyerOf[uint64](s))
	store := memstore.New()
	sum := func(v []int) (n int) {
		for _, x := range v {
			n += x
		}
		return n
	}
	model := make([]int, keys)
	type running struct {
		sn    *Snapshot
		total int
		done  chan error
		acks  []checkpoint.StateAck
	}
	var run *running
	finish := func() {
		if err := <-run.done; err != nil {
			t.Fatal(err)
		}
		run.sn.Release()
		manifests, objects := manifest(s, run.acks)
		r := New(Config{Range: everything, Key: must(KeyOf[uint64]())})
		rt := must(r.Declare(decl()))
		if err := r.Restore(context.Background(), store, manifests, objects); err != nil {
			t.Fatal(err)
		}
		rk, total := must(KeyerOf[uint64](r)), 0
		for k := range uint64(keys) {
			rk.Set(k, rk.Hash(k))
			v, _ := Get[[]int](rt)
			total += sum(v)
		}
		if total != run.total {
			t.Fatalf("restored sum %d, at the barrier %d", total, run.total)
		}
	}
	total := 0
	for i := range updates {
		k := uint64(i*7919) % keys
		kr.Set(k, kr.Hash(k))
		v, _ := Get[[]int](tb)
		if sum(v) != model[k] {
			t.Fatalf("key %d: %v, want the sum %d", k, v, model[k])
		}
		v = []int{i % 256, i % 100}
		Set(tb, v)
		total += sum(v) - model[k]
		model[k] = sum(v)
		s.EndKey()
		if i%every == 0 {
			if run != nil {
				finish()
			}
			run = &running{sn: snapshotOf(t, s, uint64(i)), total: total, done: make(chan error, 1)}
			go func(run *running) {
				ctx := context.Background()
				var err error
				run.acks, err = run.sn.Write(ctx, testPacker(ctx, store, fmt.Sprint("c", i)))
				run.done <- err
			}(run)
		}
	}
	finish()
}

// Writer, snapshots, readers of numbers and an iteration that deletes, at once.
//
// Red: a page that a snapshot still reads was written in place.
func TestCase_C04(t *testing.T) {
	const keys, rounds = 20_000, 10
	st := newStates[uint64](3, everything, 2)
	stop := make(chan struct{})
	var stats sync.WaitGroup
	stats.Go(func() { // what a REST handler does
		for {
			select {
			case <-stop:
				return
			default:
			}
			n := st.s.Memory().Total()
			for _, tb := range []*Table{st.count, st.subs} {
				n += tb.Entries()
			}
			if n < 0 {
				t.Error("negative")
			}
			runtime.Gosched()
		}
	})
	ss := snapshots{s: st.s, every: 1}
	for i := range rounds * keys {
		if i%500 == 0 {
			ss.poll(t)
		}
		st.take(uint64(i % keys))
		n, _ := Get[int64](st.count)
		Set(st.count, n+1)
		m := uint16(i % 4000)
		st.take(7)
		MapSet(st.subs, st.sub16, m, int64(i))
		if i%5_000 == 0 {
			for k := range MapAll[uint16, int64](st.subs, st.sub16) {
				if k%3 == 0 {
					MapDelete(st.subs, st.sub16, k)
				}
			}
		}
		st.s.EndKey()
	}
	close(stop)
	stats.Wait()
	if ss.sn != nil {
		<-ss.done
	}
	if ss.n == 0 {
		t.Fatal("no snapshot was written meanwhile")
	}
	st.take(3)
	if n, _ := Get[int64](st.count); n != rounds {
		t.Fatalf("count %d, want %d", n, rounds)
	}
}

// A restore that finds more or fewer entries than were written fails.
//
// Red: the manifest's count was not compared.
func TestCase_D13(t *testing.T) {
	s, kr, tb := countStore[uint64](t)
	for k := range uint64(2000) {
		countOne(kr, tb, k)
	}
	store := memstore.New()
	manifests, objects := write(t, s, snapshotOf(t, s, 1), store, "c")
	restore := func(change func(m *checkpoint.StateManifest)) error {
		m := manifests[0]
		m.Segments = append([]checkpoint.Segment(nil), m.Segments...)
		change(&m)
		r, _, _ := countStore[uint64](t)
		return r.Restore(context.Background(), store, []checkpoint.StateManifest{m}, objects)
	}
	if err := restore(func(*checkpoint.StateManifest) {}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(m *checkpoint.StateManifest){
		"one more in the manifest":      func(m *checkpoint.StateManifest) { m.Entries++ },
		"one less in the manifest":      func(m *checkpoint.StateManifest) { m.Entries-- },
		"one more in the reference":     func(m *checkpoint.StateManifest) { m.Entries++; m.Segments[0].Base.Entries++ },
		"one less in the reference":     func(m *checkpoint.StateManifest) { m.Entries--; m.Segments[0].Base.Entries-- },
		"a segment is missing":          func(m *checkpoint.StateManifest) { m.Segments = nil },
		"a segment is there twice":      func(m *checkpoint.StateManifest) { m.Segments = append(m.Segments, m.Segments[0]) },
		"twice, and counted so":         func(m *checkpoint.StateManifest) { m.Segments = append(m.Segments, m.Segments[0]); m.Entries *= 2 },
		"a tombstone in a base":         func(m *checkpoint.StateManifest) { m.Segments[0].Base.Deletes = 1 },
		"fewer blocks in the inventory": func(m *checkpoint.StateManifest) { m.Segments[0].Base.Blocks-- },
	} {
		if err := restore(change); !errors.Is(err, statefile.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
