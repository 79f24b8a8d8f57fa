package transport

import (
	"runtime"
	"sync"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
)

type batch int

func (b batch) Len() int { return int(b) }
func (batch) Recycle()   {}

func records(n int) element.Element {
	return element.Element{Kind: element.Records, Batch: batch(n)}
}

func barrier(id checkpoint.ID) element.Element {
	return element.Element{Kind: element.Barrier, Barrier: checkpoint.Barrier{ID: id}}
}

func TestRingHoldsExactlyItsCapacity(t *testing.T) {
	for capacity := 1; capacity <= 9; capacity++ {
		r := NewRing(capacity)
		for range 3 {
			n := 0
			for r.Push(records(1)) {
				n++
			}
			if n != capacity || r.Len() != capacity || r.Records() != int64(capacity) {
				t.Fatalf("capacity %d: pushed %d, length %d, %d records", capacity, n, r.Len(), r.Records())
			}
			for range n {
				if _, ok := r.Pop(); !ok {
					t.Fatal("nothing to pop")
				}
			}
			if _, ok := r.Pop(); ok || r.Peek() != nil {
				t.Fatal("popped more than was pushed")
			}
		}
	}
}

func TestPoppedSlotsKeepNothingAlive(t *testing.T) {
	q := NewQueue[*int](2)
	q.Push(new(int))
	q.Pop()
	for i, p := range q.slots {
		if p != nil {
			t.Errorf("slot %d still points somewhere", i)
		}
	}
}

func TestProducerIsWokenOnceAndOnlyAfterItFoundTheRingFull(t *testing.T) {
	r, woken := NewRing(4), 0
	r.NotifyProducer(func() { woken++ })
	for range 4 {
		r.Push(records(1))
	}
	for range 4 {
		r.Pop()
	}
	if woken != 0 {
		t.Fatalf("woken %d times, the ring was never found full", woken)
	}
	for r.Push(records(1)) {
	}
	r.Pop()
	if woken != 0 {
		t.Fatal("woken for a single slot")
	}
	r.Pop()
	r.Pop()
	if woken != 1 {
		t.Fatalf("woken %d times after half of the ring was free", woken)
	}
	for r.Push(records(1)) {
	}
	r.Pop()
	r.Relieve() // the consumer blocks the channel
	r.Relieve()
	if woken != 2 {
		t.Errorf("woken %d times in all", woken)
	}
}

func TestAheadCountsUpToTheBarrier(t *testing.T) {
	r := NewRing(8)
	r.Push(records(3))
	r.Push(barrier(1))
	r.Push(records(4))
	r.Push(barrier(2))
	r.Push(records(5))
	for id, want := range map[checkpoint.ID]int64{1: 3, 2: 7, 3: 12} {
		if n := r.Ahead(id); n != want {
			t.Errorf("ahead of barrier %d: %d records, want %d", id, n, want)
		}
	}
}

// 1. The producer finds the ring full. 2. The consumer empties it, sees nobody
// waiting, and goes to sleep. 3. The producer announces that it will wait. It
// must look again, or both sleep for ever.
func TestProducerLooksAgainAfterItAnnouncedToWait(t *testing.T) {
	r := NewRing(1)
	r.Push(records(1))
	if r.q.Push(records(1)) {
		t.Fatal("the ring is not full")
	}
	r.Pop()
	if !r.pushAgain(records(1)) {
		t.Fatal("the producer waits beside an empty ring")
	}
	if r.starved.Load() {
		t.Error("it is still announced that the producer waits")
	}
}

// Two goroutines that sleep until they are woken: a lost wake-up hangs the test.
func TestNoElementAndNoWakeUpIsLost(t *testing.T) {
	for _, capacity := range []int{1, 1, 1, 1, 2, 3, 8} {
		const total = 50000
		r := NewRing(capacity)
		room, work := make(chan struct{}, 1), make(chan struct{}, 1)
		signal := func(c chan struct{}) func() {
			return func() {
				select {
				case c <- struct{}{}:
				default:
				}
			}
		}
		r.NotifyConsumer(signal(work))
		r.NotifyProducer(signal(room))
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range total {
				for !r.Push(barrier(checkpoint.ID(i))) {
					<-room
				}
			}
		})
		wg.Go(func() {
			for i := range total {
				e, ok := r.Pop()
				for ; !ok; e, ok = r.Pop() {
					<-work
				}
				if e.Barrier.ID != checkpoint.ID(i) {
					t.Errorf("got %d, want %d", e.Barrier.ID, i)
					return
				}
				if i%97 == 0 {
					runtime.Gosched()
				}
			}
		})
		wg.Wait()
	}
}

func BenchmarkRing(b *testing.B) {
	r := NewRing(8)
	for b.Loop() {
		r.Push(records(1))
		r.Pop()
	}
}
