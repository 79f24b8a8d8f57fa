package task

import (
	"testing"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
)

// A savepoint may be triggered while a checkpoint is prepared: it begins when
// that one's snapshot is taken, and the subtask is not released in between.
func TestTriggerWhilePreparingBeginsAfterwards(t *testing.T) {
	w := &world{t: t, now: 1}
	wr, r := &writer{}, &numbers{}
	sink := operator.NewSink(operator.SinkConfig[int]{Name: "out", Writer: wr.open})
	source := operator.NewSource(operator.SourceConfig[int]{Name: "numbers", Reader: r.open, Outs: []any{sink.Entries[0].Input()}})
	task := w.add(Config{
		ID: sourceID(0), Mode: checkpoint.ExactlyOnce, Instance: connector.Instance{Parallelism: 1},
		Ops: []Op{{Name: "numbers", Op: source.Op}, {Name: "out", Op: sink.Op}},
	})
	task.Deliver(AddSplits{[]checkpoint.Split{{ID: "s"}}})
	w.settle()
	w.held = true
	task.Deliver(trigger(1))
	w.settle()
	task.Deliver(trigger(2))
	w.settle()
	r.put(1, 10)
	w.settle()
	w.runWork() // Prepare 1
	w.settle()
	if task.preparing == nil || task.preparing.begin.Barrier.ID != 2 {
		t.Fatal("checkpoint 2 has not begun")
	}
	if r.at != 0 {
		t.Fatal("records were read while checkpoint 2 is prepared")
	}
	w.held = false
	w.settle()
	if w.ackOf(1, sourceID(0)) == nil || w.ackOf(2, sourceID(0)) == nil || r.at != 10 {
		t.Errorf("acks %v, declines %v, %d records read", w.acks, w.declines, r.at)
	}
}

func TestAbortOfACheckpointThatWasNeverSeenIsRemembered(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.all(checkpoint.Abort{ID: 1, Epoch: epoch}) // overtakes the trigger
	p.triggerSources(1)
	p.settle()
	if len(p.acks) != 0 {
		t.Errorf("acks: %v", p.acks)
	}
	p.triggerSources(2)
	p.settle()
	if len(p.acks) != 2 {
		t.Errorf("acks: %v", p.acks)
	}
	p.mustBeFine()
}

// Mail about checkpoints may come while operators are still opening; it is
// theirs once they are open, in order.
func TestEarlyMailWaitsUntilOperatorsAreOpen(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.keyed[0].Deliver(checkpoint.Complete{ID: 4, Epoch: epoch})
	p.keyed[0].Deliver(checkpoint.Committed{ID: 4, Epoch: epoch})
	stepAll(p.keyed[0])
	if n := len(p.counters[0].log); n != 1 {
		t.Fatalf("before ready: %v", p.counters[0].log)
	}
	p.settle()
	if n := len(p.counters[0].log); n != 3 {
		t.Errorf("after ready: %v", p.counters[0].log)
	}
}
