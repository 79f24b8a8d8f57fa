package task

import (
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
)

// A newer barrier overtakes a checkpoint whose barrier one channel never
// delivered: that is a normal end of it. The subtask lives on, the newer one
// completes, and the old barrier, when it comes at last, is ignored.
//
// Red: Barriers.subsume did not give the older id up (2 was never acknowledged);
// Barriers.stale said no (the late barrier was declined again).
func TestCase_B08(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 1})
	p.settle()
	down := p.keyed[0]
	a, b := p.rings[0][0], p.rings[1][0]
	push := func(ch interface{ Push(element.Element) bool }, id checkpoint.ID) {
		t.Helper()
		if !ch.Push(element.Element{Kind: element.Barrier, Barrier: checkpoint.Barrier{ID: id}}) {
			t.Fatalf("no room for barrier %d", id)
		}
		p.settle()
	}
	push(a, 1)
	push(a, 2) // behind 1, and not taken yet
	push(b, 2) // 1 never comes on b
	p.mustBeFine()
	if len(p.declines) != 1 || p.declines[0].ID != 1 || p.declines[0].Reason != checkpoint.Subsumed || p.declines[0].Reason.Counts() {
		t.Fatalf("declines %+v, want checkpoint 1 as subsumed, which is no failure", p.declines)
	}
	if p.ackOf(2, keyedID(0)) == nil || p.ackOf(1, keyedID(0)) != nil {
		t.Fatalf("acks %+v, want one of 2", p.acks)
	}
	push(b, 1)
	if n := down.Counters().Barriers.StaleBarriers; n != 1 {
		t.Errorf("stale_barriers=%d, want 1", n)
	}
	if len(p.declines) != 1 {
		t.Errorf("the stale barrier is declined again: %+v", p.declines)
	}
	// Nothing is blocked: what comes on both channels is processed.
	for i, r := range p.readers {
		r.put(100*(i+1), 10)
	}
	p.settle()
	if n := len(p.counters[0].sum); n != 20 {
		t.Errorf("%d of 20 records were processed behind the stale barrier", n)
	}
	push(a, 3)
	push(b, 3)
	if p.ackOf(3, keyedID(0)) == nil {
		t.Error("checkpoint 3 is not acknowledged")
	}
	p.mustBeFine()
}
