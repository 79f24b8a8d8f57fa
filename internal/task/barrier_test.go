package task

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
)

// Case A01, part a: a blocked channel is received up to its capacity.
func TestReceivingWhileBlocked(t *testing.T) {
	const capacity = 4
	p := newPipeline(t, shape{sources: 2, keyed: 1, capacity: capacity, batch: 10})
	a, b := p.readers[0], p.readers[1]
	a.most, b.most = 10, 10
	p.settle()
	a.put(1, 50)
	p.settle()
	p.sources[0].Deliver(trigger(1)) // B's barrier does not come
	p.settle()

	a.put(1000, 400)
	p.settle()
	if n := p.rings[0][0].Len(); n != capacity {
		t.Errorf("A's channel holds %d elements of %d", n, capacity)
	}
	// The sender stalls only now: one batch more than the channel takes.
	if n := len(a.queue); n != 400-10*(capacity+1) {
		t.Errorf("A's reader still has %d records", n)
	}
	b.put(5000, 300)
	p.settle()
	if len(b.queue) != 0 || len(p.counters[0].sum) != 350 {
		t.Errorf("B was not processed throughout: %d records seen", len(p.counters[0].sum))
	}

	p.sources[1].Deliver(trigger(1))
	p.settle()
	ack := p.ackOf(1, keyedID(0))
	if ack == nil {
		t.Fatalf("no ack; declines %v", p.declines)
	}
	n := ack.Operators[0].States[0].Entries
	if n != 350 {
		t.Errorf("the snapshot has %d records, not the 350 before the barriers", n)
	}
	t.Logf("accept: A's queue held %d of %d, its sender stalled then, B's 300 were processed, %d records in the snapshot", capacity, capacity, n)
	if len(p.counters[0].sum) != 750 || len(a.queue) != 0 {
		t.Errorf("%d records after the alignment", len(p.counters[0].sum))
	}
	p.mustBeFine()
}

func TestStatisticsNameChannelsAndWhatWasQueued(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 1, capacity: 4, batch: 10})
	p.readers[1].most = 10
	p.settle()
	p.now = 100
	p.sources[0].Deliver(trigger(1))
	stepAll(p.sources[0])
	p.readers[1].put(1, 30)
	stepAll(p.sources[1])
	p.now = 200
	p.keyed[0].Step() // the barrier of channel 0
	p.settle()
	p.now = 500
	p.sources[1].Deliver(trigger(1))
	p.settle()
	got := p.ackOf(1, keyedID(0)).Stats
	want := checkpoint.SubtaskStats{
		Subtask: keyedID(0), First: 200, Last: 500, Alignment: 300, Bytes: 240,
		Channels: []checkpoint.ChannelStats{{From: sourceID(0), Arrived: 200}, {From: sourceID(1), Arrived: 500, Queued: 30}},
		States:   []checkpoint.StateStats{{Operator: "count", State: "n", Entries: 30, Bytes: 240}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAbortReleasesBlockedChannels(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 1})
	p.settle()
	p.sources[0].Deliver(trigger(1))
	p.settle()
	p.readers[0].put(1, 5)
	p.settle()
	if n := len(p.counters[0].sum); n != 0 {
		t.Fatalf("%d records passed a blocked channel", n)
	}
	p.all(checkpoint.Abort{ID: 1, Epoch: epoch, Reason: checkpoint.Expired})
	p.settle()
	if n := len(p.counters[0].sum); n != 5 {
		t.Fatalf("%d records after the abort", n)
	}
	// The barrier that comes late is swallowed and blocks nothing.
	p.readers[1].put(100, 3)
	p.sources[1].Deliver(trigger(1))
	p.readers[1].put(200, 3)
	p.settle()
	if n := len(p.counters[0].sum); n != 11 {
		t.Errorf("%d records after the late barrier", n)
	}
	if diff := cmp.Diff([]string{"open", "abort 1"}, p.counters[0].log); diff != "" {
		t.Error(diff)
	}
	p.mustBeFine()
}

// Case A06.
func TestTriggerBeforeReadyIsDeclinedByName(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 1})
	p.sources[0].Step() // opened, its reader is not there yet
	for p.sources[0].mail.waiting.Load() > 0 {
		p.sources[0].Step()
	}
	p.sources[0].Deliver(trigger(1))
	p.sources[0].Step()
	want := checkpoint.Decline{Subtask: sourceID(0), Epoch: epoch, ID: 1, Reason: checkpoint.NotReady, Detail: "task numbers/0 is not ready"}
	if len(p.declines) != 1 || p.declines[0] != want {
		t.Fatalf("declines: %v", p.declines)
	}
	// Whoever has the barrier of the other source is released by the marker.
	p.settle()
	p.sources[1].Deliver(trigger(1))
	p.settle()
	p.readers[1].put(1, 5)
	p.settle()
	if n := len(p.counters[0].sum); n != 5 {
		t.Errorf("%d records reached the keyed operator", n)
	}
}

// Case A07: whatever fails in a subtask, those behind it are released.
func TestFailedSnapshotReleasesDownstream(t *testing.T) {
	tests := []struct {
		name   string
		fail   func(*counter)
		reason checkpoint.Reason
	}{
		{"sync", func(c *counter) { c.fail = errors.New("no") }, checkpoint.SyncFailed},
		{"busy", func(c *counter) { c.fail = &operator.DeclineError{Reason: checkpoint.Busy} }, checkpoint.Busy},
		{"async", func(c *counter) { c.failWrite = errors.New("no") }, checkpoint.AsyncFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := newChain(t)
			p.settle()
			tt.fail(p.upstream[0])
			p.triggerSources(3)
			p.settle()
			if len(p.declines) != 1 || p.declines[0].Reason != tt.reason || p.declines[0].ID != 3 {
				t.Fatalf("declines: %v", p.declines)
			}
			p.readers[1].put(1, 5)
			p.settle()
			if n := len(p.counters[0].sum); n != 5 {
				t.Fatalf("%d records passed", n)
			}
			p.all(checkpoint.Abort{ID: 3, Epoch: epoch})
			p.triggerSources(4)
			p.settle()
			if len(p.declines) != 1 || p.ackOf(4, keyedID(0)) == nil {
				t.Errorf("checkpoint 4: acks %v, declines %v", p.acks, p.declines)
			}
			if n := count(p.upstream[0].log, "abort 3"); n != 1 {
				t.Errorf("operator was told %d times of the abort: %v", n, p.upstream[0].log)
			}
			p.mustBeFine()
		})
	}
}

func count(log []string, what string) (n int) {
	for _, l := range log {
		if l == what {
			n++
		}
	}
	return n
}

func TestEveryTakenSnapshotIsReleasedOnce(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.held = true
	p.triggerSources(1)
	p.settle()
	p.runWork() // Prepare
	p.settle()
	p.all(checkpoint.Abort{ID: 1, Epoch: epoch})
	p.settle()
	if n := count(p.counters[0].log, "release"); n != 0 {
		t.Fatal("released while it is being written")
	}
	p.runWork()
	p.settle()
	if n := count(p.counters[0].log, "release"); n != 1 {
		t.Errorf("released %d times", n)
	}
	if p.ackOf(1, keyedID(0)) != nil || len(p.declines) != 0 {
		t.Errorf("an aborted checkpoint was answered: %v %v", p.acks, p.declines)
	}
}

func TestPrepareComesBeforeBarrierAndSnapshotAndStopsRecords(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.held = true
	p.triggerSources(1)
	p.readers[0].put(1, 10)
	p.settle()
	if len(p.counters[0].sum) != 0 || count(p.counters[0].log, "snapshot 1") != 0 {
		t.Fatalf("while Prepare is awaited: %d records, log %v", len(p.counters[0].sum), p.counters[0].log)
	}
	if d := p.keyed[0].Doing(); d.Activity != Preparing {
		t.Errorf("doing: %v", d)
	}
	p.keyed[0].Deliver(checkpoint.Complete{ID: 0, Epoch: epoch}) // mail is still handled
	p.settle()
	p.now += 1000
	p.runWork()
	p.settle()
	if len(p.counters[0].sum) != 10 || count(p.counters[0].log, "snapshot 1") != 1 {
		t.Fatalf("after Prepare: %d records, log %v", len(p.counters[0].sum), p.counters[0].log)
	}
	p.held = false
	p.settle()
	ack := p.ackOf(1, keyedID(0))
	if ack.Operators[0].States[0].Entries != 0 || ack.Stats.Prepare != 1000 {
		t.Errorf("ack: %+v", ack)
	}
}

func TestAbortWhilePreparingSendsAMarkerAndKeepsTheCommittable(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.readers[0].put(1, 3)
	p.settle()
	p.held = true
	p.triggerSources(1)
	p.settle()
	p.all(checkpoint.Abort{ID: 1, Epoch: epoch})
	p.settle()
	p.held = false
	p.settle()
	if count(p.counters[0].log, "snapshot 1") != 0 || p.ackOf(1, keyedID(0)) != nil {
		t.Fatal("the snapshot of an aborted checkpoint was taken")
	}
	p.triggerSources(2)
	p.settle()
	cs := p.ackOf(2, keyedID(0)).Operators[1].Committables
	if len(cs) != 2 || cs[0].ID != "t1" || cs[0].Prepared != 1 || cs[1].ID != "t2" {
		t.Errorf("committables: %+v", cs)
	}
}

func TestCommittableStaysUntilCommitted(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	ids := func(id checkpoint.ID) (s []string) {
		p.triggerSources(id)
		p.settle()
		for _, c := range p.ackOf(id, keyedID(0)).Operators[1].Committables {
			s = append(s, c.ID)
		}
		return s
	}
	if got := ids(1); !slices.Equal(got, []string{"t1"}) {
		t.Errorf("1: %v", got)
	}
	p.all(checkpoint.Complete{ID: 1, Epoch: epoch})
	if got := ids(2); !slices.Equal(got, []string{"t1", "t2"}) {
		t.Errorf("2, while 1 is complete and not committed: %v", got)
	}
	p.all(checkpoint.Committed{ID: 1, Epoch: epoch})
	p.all(checkpoint.Committed{ID: 1, Epoch: epoch})
	if got := ids(3); !slices.Equal(got, []string{"t2", "t3"}) {
		t.Errorf("3, after 1 was committed: %v", got)
	}
	if n := count(p.counters[0].log, "committed 1"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestAbortTellsOfTheLatestCompleteFirst(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1})
	p.settle()
	p.triggerSources(1)
	p.settle()
	p.keyed[0].Deliver(checkpoint.Abort{ID: 2, Epoch: epoch, LatestComplete: 1})
	p.keyed[0].Deliver(checkpoint.Complete{ID: 1, Epoch: epoch})
	p.keyed[0].Deliver(checkpoint.Abort{ID: 2, Epoch: epoch, LatestComplete: 1})
	p.settle()
	want := []string{"open", "snapshot 1", "release", "complete 1", "abort 2"}
	if diff := cmp.Diff(want, p.counters[0].log); diff != "" {
		t.Error(diff)
	}
}

// Case B08.
func TestNewerBarrierSubsumesAnOlderCheckpoint(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 1})
	p.settle()
	p.sources[0].Deliver(trigger(1))
	p.settle()
	p.sources[0].Deliver(trigger(2))
	p.sources[1].Deliver(trigger(2))
	p.settle()
	// Channel 0 is blocked for 1, channel 1 delivers 2: 1 never comes there.
	if len(p.declines) != 1 || p.declines[0].ID != 1 || p.declines[0].Reason != checkpoint.Subsumed {
		t.Fatalf("declines: %v", p.declines)
	}
	if p.ackOf(2, keyedID(0)) == nil {
		t.Fatal("checkpoint 2 was not taken")
	}
	p.rings[1][0].Push(element.Element{Kind: element.Barrier, Barrier: checkpoint.Barrier{ID: 1}})
	p.readers[1].put(1, 3)
	p.settle()
	if n := p.keyed[0].Counters().Barriers.StaleBarriers; n != 1 {
		t.Errorf("stale barriers: %d", n)
	}
	if n := len(p.counters[0].sum); n != 3 {
		t.Errorf("%d records passed", n)
	}
	p.mustBeFine()
}

func TestAtLeastOnceBlocksNothing(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 1, mode: checkpoint.AtLeastOnce})
	p.settle()
	p.sources[0].Deliver(trigger(1))
	p.settle()
	p.readers[0].put(1, 7)
	p.settle()
	if n := len(p.counters[0].sum); n != 7 {
		t.Fatalf("%d records passed", n)
	}
	p.sources[1].Deliver(trigger(1))
	p.settle()
	if n := p.ackOf(1, keyedID(0)).Operators[0].States[0].Entries; n != 7 {
		t.Errorf("the snapshot has %d records", n)
	}
}

func TestEndOfInputCompletesAnAlignment(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 1})
	p.settle()
	p.sources[0].Deliver(trigger(1))
	p.readers[0].put(1, 4)
	p.settle()
	p.readers[1].put(100, 3)
	p.readers[1].ended = true
	p.settle()
	ack := p.ackOf(1, keyedID(0))
	if ack == nil {
		t.Fatal("no ack")
	}
	if op := ack.Operators[0]; op.States[0].Entries != 3 || op.Finished {
		t.Errorf("snapshot: %+v", op)
	}
	if len(p.ended) != 1 {
		t.Errorf("ended: %v", p.ended)
	}
	// The source that ended answers by mail, and sends nothing behind its end.
	p.triggerSources(2)
	p.settle()
	if len(p.acks) != 5 || p.ackOf(2, keyedID(0)) == nil {
		t.Errorf("acks: %v", p.acks)
	}
	p.mustBeFine()
}

func TestAlignmentLimitDeclinesAndReleases(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 1, batch: 10, options: Options{AlignmentLimit: 25}})
	p.readers[0].most = 10
	p.settle()
	p.sources[0].Deliver(trigger(1))
	p.readers[0].put(1, 20)
	p.settle()
	if len(p.declines) != 0 {
		t.Fatalf("declines: %v", p.declines)
	}
	p.readers[0].put(21, 10)
	p.settle()
	if len(p.declines) != 1 || p.declines[0].Reason != checkpoint.AlignmentLimit {
		t.Fatalf("declines: %v", p.declines)
	}
	if n := len(p.counters[0].sum); n != 30 {
		t.Errorf("%d records passed", n)
	}
	p.mustBeFine()
}

func TestInlineSnapshotNeedsNoExecutor(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1, options: Options{Inline: true}})
	p.settle()
	p.held = true
	p.triggerSources(1)
	stepAll(p.sources[0])
	if p.ackOf(1, sourceID(0)) == nil || len(p.work) != 0 {
		t.Errorf("acks %v, %d pieces of work", p.acks, len(p.work))
	}
}
