package task

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/transport"
)

// lone is a keyed subtask whose channels the test fills itself.
func lone(t *testing.T, channels, capacity int, o Options, ops ...Op) (*world, *Task, []*transport.Ring) {
	w := &world{t: t, now: 1}
	head := ops[0].Op.(operator.Input[int])
	cfg := Config{
		ID: keyedID(0), Mode: checkpoint.ExactlyOnce, Ops: ops, Options: o,
		Entries: []operator.Entry{operator.NewEntry(head)},
	}
	var rings []*transport.Ring
	for i := range channels {
		rings = append(rings, transport.NewRing(capacity))
		cfg.Inputs = append(cfg.Inputs, Input{Ring: rings[i], From: sourceID(i)})
	}
	task := w.add(cfg)
	w.settle()
	return w, task, rings
}

func run(n int) element.Element {
	return element.Element{Kind: element.Records, Batch: &element.Run[int]{Values: upTo(n)}}
}

func barrier(id checkpoint.ID) element.Element {
	return element.Element{Kind: element.Barrier, Barrier: checkpoint.Barrier{ID: id}}
}

// A producer that found the channel full before it was blocked is woken, so
// that it fills the channel to its capacity.
func TestBlockingAChannelWakesItsProducer(t *testing.T) {
	_, task, rings := lone(t, 2, 8, Options{}, Op{Name: "count", Op: &counter{name: "count"}})
	woken := 0
	rings[0].NotifyProducer(func() { woken++ })
	rings[0].Push(barrier(1))
	for rings[0].Push(run(1)) {
	}
	stepAll(task)
	if woken != 1 || rings[0].Len() != 7 {
		t.Errorf("woken %d times, %d elements queued", woken, rings[0].Len())
	}
}

func TestQueuedCountsTheBatchInHand(t *testing.T) {
	w, task, rings := lone(t, 2, 8, Options{SliceRecords: 4}, Op{Name: "count", Op: &counter{name: "count"}})
	task.slice.n = 4
	rings[1].Push(run(10))
	rings[1].Push(run(3))
	rings[1].Push(barrier(1))
	task.Step() // four of the ten
	rings[0].Push(barrier(1))
	w.settle()
	if n := w.acks[0].Stats.Channels[1].Queued; n != 9 {
		t.Errorf("%d records were queued ahead", n)
	}
}

func TestFairnessBetweenChannels(t *testing.T) {
	c := &counter{name: "count"}
	_, task, rings := lone(t, 3, 8, Options{SliceRecords: 2}, Op{Name: "count", Op: c})
	for i, r := range rings {
		b := &element.Run[int]{}
		for range 4 {
			b.Values = append(b.Values, i)
		}
		r.Push(element.Element{Kind: element.Records, Batch: b})
	}
	task.slice.n = 2
	stepAll(task)
	if want := []int{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}; !slices.Equal(c.sum, want) {
		t.Errorf("order %v", c.sum)
	}
}

func TestWatermarkIsTheLeastOfTheOpenChannels(t *testing.T) {
	last := &marks{}
	c := &counter{name: "count", out: operator.NewOutput[int]([]any{last})}
	_, task, rings := lone(t, 3, 8, Options{}, Op{Name: "count", Op: c})
	mark := func(ch int, at int64) { rings[ch].Push(element.Element{Kind: element.Watermark, Time: at}) }
	mark(0, 10)
	mark(1, 20)
	mark(2, 30)
	mark(0, 25)
	stepAll(task)
	rings[1].Push(element.Element{Kind: element.EndOfInput})
	stepAll(task)
	if diff := cmp.Diff([]int64{10, 20, 25}, last.at); diff != "" {
		t.Error(diff)
	}
}

type marks struct{ at []int64 }

func (m *marks) Process(*element.Run[int]) error { return nil }
func (m *marks) Watermark(t int64) error         { m.at = append(m.at, t); return nil }

// blamed always has a record in hand, as the operators before a slow one do.
type blamed struct{ counter }

func (b *blamed) Where() (string, string) { return b.name, "record of the head" }

func TestPanicIsBlamedOnTheDeepestOperator(t *testing.T) {
	tail := &counter{name: "tail", panicOn: 2}
	head := &blamed{counter{name: "head", out: operator.NewOutput[int]([]any{tail})}}
	w, _, rings := lone(t, 1, 8, Options{}, Op{Name: "head", Op: head}, Op{Name: "tail", Op: tail})
	rings[0].Push(run(3))
	w.settle()
	if e, ok := w.failed[0].(*PanicError); !ok || e.Operator != "tail" {
		t.Errorf("failed: %v", w.failed[0])
	}
}

func TestSnapshotsAreTakenTailToHeadAndAckedHeadFirst(t *testing.T) {
	tail := &counter{name: "tail"}
	head := &counter{name: "head", out: operator.NewOutput[int]([]any{tail})}
	w, _, rings := lone(t, 1, 8, Options{}, Op{Name: "head", Op: head}, Op{Name: "tail", Op: tail})
	head.fail = &operator.DeclineError{Reason: checkpoint.Busy, Detail: "no"}
	rings[0].Push(barrier(1))
	w.settle()
	// The head refused, so the tail had been asked before.
	if n := count(tail.log, "snapshot 1"); n != 1 || count(tail.log, "release") != 1 {
		t.Errorf("tail: %v", tail.log)
	}
	rings[0].Push(barrier(2))
	w.settle()
	if ops := w.acks[0].Operators; ops[0].Operator != "head" || ops[1].Operator != "tail" {
		t.Errorf("acked %v", ops)
	}
}

func TestOperatorThatHadEndedDoesNotFinishAgain(t *testing.T) {
	c := &counter{name: "count"}
	w, _, rings := lone(t, 1, 8, Options{}, Op{Name: "count", Op: c, Restore: &operator.Restore{Finished: true}})
	rings[0].Push(element.Element{Kind: element.EndOfInput})
	w.settle()
	if len(w.ended) != 1 || count(c.log, "finish") != 0 {
		t.Errorf("ended %v, log %v", w.ended, c.log)
	}
}

func TestEndedWaitsForTheSinksWrites(t *testing.T) {
	wr := &writer{}
	sink := operator.NewSink(operator.SinkConfig[int]{Name: "out", Writer: wr.open})
	c := &counter{name: "count", out: operator.NewOutput[int]([]any{sink.Entries[0].Input()})}
	w, _, rings := lone(t, 1, 8, Options{}, Op{Name: "count", Op: c}, Op{Name: "out", Op: sink.Op})
	w.held = true
	rings[0].Push(run(3))
	rings[0].Push(element.Element{Kind: element.EndOfInput})
	w.settle()
	if len(w.ended) != 0 {
		t.Fatal("ended while records are being written")
	}
	w.held = false
	w.settle()
	if len(w.ended) != 1 || len(wr.wrote) != 3 {
		t.Errorf("ended %v, wrote %v", w.ended, wr.wrote)
	}
}

func TestNothingFollowsTheEndOfInput(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 2})
	p.readers[0].ended = true
	p.settle()
	p.triggerSources(1)
	p.sources[0].Deliver(checkpoint.Abort{ID: 2, Epoch: epoch})
	p.settle()
	for _, r := range p.rings[0] {
		if r.Len() != 0 {
			t.Errorf("%v was sent behind the end of input", r.Peek().Kind)
		}
	}
}

func TestTrickleIsSentInTimeThoughTheSubtaskIsBusy(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.readers[0].most = 1
	p.readers[0].put(1, 1000)
	p.sources[0].Step()
	ms := int64(time.Millisecond)
	for range 25 { // the reader always has more, and no batch fills
		p.now += ms
		p.sources[0].Step()
	}
	if n := p.rings[0][0].Records(); n < 15 {
		t.Errorf("%d records were sent in 25 ms", n)
	}
}

func TestSlicesFollowTheSpeedOfTheFunction(t *testing.T) {
	var s slicer
	s.init(1024, 100*time.Microsecond)
	for range 20 {
		s.took(s.n, 1000)
	}
	if s.n != 1024 {
		t.Errorf("fast: slices of %d", s.n)
	}
	s.took(1024, 1024*int64(time.Millisecond))
	if s.n != 1 {
		t.Errorf("slow: slices of %d", s.n)
	}
	for range 20 {
		s.took(s.n, int64(s.n)*int64(10*time.Microsecond))
	}
	if s.n < 5 || s.n > 20 {
		t.Errorf("10 us a record: slices of %d", s.n)
	}
}
