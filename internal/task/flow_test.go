package task

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// total returns everything that all counters saw, sorted.
func (p *pipeline) total() []int {
	var all []int
	for _, c := range p.counters {
		all = append(all, c.sum...)
	}
	slices.Sort(all)
	return all
}

func upTo(n int) []int {
	var s []int
	for i := range n {
		s = append(s, i+1)
	}
	return s
}

func TestBoundedInputIsProcessedOnceCheckpointedAndClosed(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 2})
	p.readers[0].put(1, 3000)
	p.readers[1].put(3001, 2000)
	p.settle()
	if diff := cmp.Diff(upTo(5000), p.total()); diff != "" {
		t.Fatal(diff)
	}
	if len(p.ready) != 4 {
		t.Fatalf("ready: %v", p.ready)
	}

	p.triggerSources(1)
	p.settle()
	if len(p.acks) != 4 {
		t.Fatalf("%d acks: %v, declines %v", len(p.acks), p.acks, p.declines)
	}
	if n := p.ackOf(1, sourceID(1)).Operators[0].Splits[0].N; n != 2000 {
		t.Errorf("split-1 stands at %d", n)
	}

	for i, r := range p.readers {
		r.put(5001+10*i, 10)
		r.ended = true
	}
	p.settle()
	if len(p.ended) != 4 {
		t.Fatalf("ended: %v", p.ended)
	}
	// The final checkpoint is triggered by mail everywhere: nothing flows any more.
	for _, task := range p.tasks {
		task.Deliver(checkpoint.Trigger{Barrier: checkpoint.Barrier{ID: 2, Kind: checkpoint.Final}, Epoch: epoch})
	}
	p.settle()
	if len(p.acks) != 8 {
		t.Fatalf("%d acks, declines %v", len(p.acks), p.declines)
	}
	for _, a := range p.acks[4:] {
		for _, op := range a.Operators {
			if !op.Finished {
				t.Errorf("%v: %s is not finished", a.Subtask, op.Operator)
			}
		}
	}
	out := p.ackOf(2, keyedID(0)).Operators[1]
	if len(out.Committables) != 2 || out.Committables[0].Prepared != 1 || out.Committables[1].Prepared != 2 {
		t.Errorf("committables: %+v", out.Committables)
	}
	p.all(Stop{})
	p.settle()
	for i, task := range p.tasks {
		if !task.Step().Closed {
			t.Errorf("task %d is not closed", i)
		}
	}
	for i := range p.readers {
		if p.readers[i].closed != 1 || p.writers[i].closed != 1 {
			t.Errorf("closed %d and %d times", p.readers[i].closed, p.writers[i].closed)
		}
		if n := len(p.writers[i].wrote); n != len(p.counters[i].sum) {
			t.Errorf("writer %d was given %d records of %d", i, n, len(p.counters[i].sum))
		}
	}
	p.mustBeFine()
}

func TestOperatorsFinishHeadToTailOnce(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.readers[0].put(1, 10)
	p.readers[0].ended = true
	p.settle()
	p.all(Stop{})
	p.settle()
	if diff := cmp.Diff([]string{"open", "finish", "close"}, p.counters[0].log); diff != "" {
		t.Fatal(diff)
	}
}

func TestPanicNamesOperatorRecordAndStack(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.counters[0].panicOn = 7
	p.readers[0].put(1, 10)
	p.settle()
	if len(p.failed) != 1 {
		t.Fatalf("failed: %v", p.failed)
	}
	e, ok := errors.AsType[*PanicError](p.failed[0])
	if !ok || e.Operator != "count" || e.Record != "record 7" {
		t.Fatalf("failed: %v", p.failed[0])
	}
	if !strings.Contains(string(e.Stack), "(*counter).Process") {
		t.Errorf("stack does not show who panicked:\n%s", e.Stack)
	}
	if !p.keyed[0].Step().Closed {
		t.Error("the subtask is not closed")
	}
	if diff := cmp.Diff([]string{"open", "close"}, p.counters[0].log); diff != "" {
		t.Error(diff)
	}
}

func TestWriteErrorEndsTheAttemptNamingTheSink(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.writers[0].fail = errors.New("disk full")
	p.readers[0].put(1, 10)
	p.settle()
	if len(p.failed) != 1 || p.failed[0].Error() != `sink "out": write: disk full` {
		t.Fatalf("failed: %v", p.failed)
	}
	if p.writers[0].closed != 1 {
		t.Errorf("writer closed %d times", p.writers[0].closed)
	}
}

func TestKillWaitsForTheExecutorBeforeItCloses(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.held = true
	p.readers[0].put(1, 10)
	p.settle() // a Write is under way
	p.keyed[0].Kill()
	p.settle()
	if p.writers[0].closed != 0 {
		t.Fatal("the writer was closed while it wrote")
	}
	if d := p.keyed[0].Doing(); d.Activity != Closing {
		t.Errorf("doing: %v", d)
	}
	p.runWork()
	p.settle()
	if p.writers[0].closed != 1 || !p.keyed[0].Step().Closed {
		t.Error("the subtask is not closed")
	}
	p.mustBeFine()
}

func TestMailOfAnotherAttemptIsRefused(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	old := checkpoint.Epoch{Generation: 2, Attempt: 9}
	p.sources[0].Deliver(checkpoint.Trigger{Barrier: checkpoint.Barrier{ID: 1}, Epoch: old})
	p.keyed[0].Deliver(checkpoint.Complete{ID: 1, Epoch: old})
	p.keyed[0].Deliver(checkpoint.Committed{ID: 1, Epoch: old})
	p.keyed[0].Deliver(checkpoint.Abort{ID: 2, Epoch: old})
	p.settle()
	if len(p.acks)+len(p.declines) != 0 {
		t.Errorf("answered: %v %v", p.acks, p.declines)
	}
	if n := p.keyed[0].Counters().Refused; n != 3 {
		t.Errorf("refused %d mails", n)
	}
	if diff := cmp.Diff([]string{"open"}, p.counters[0].log); diff != "" {
		t.Error(diff)
	}
}

func TestSlowFunctionsGetOneRecordASlice(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.sources[0].slice.n = 100
	p.readers[0].put(1, 100)
	stepAll(p.sources[0])
	c := p.counters[0]
	c.opened = nil
	// The clock moves by 1 ms at each reading: each slice takes too long.
	p.keyed[0].cfg.Now = func() int64 { p.now += 1e6; return p.now }
	for n := 1; n <= 5; n++ {
		for len(c.sum) < n {
			p.keyed[0].Step()
		}
		if len(c.sum) != n {
			t.Fatalf("%d records after %d slices", len(c.sum), n)
		}
	}
}
