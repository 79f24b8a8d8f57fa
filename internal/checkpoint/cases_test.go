package checkpoint_test

import (
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// A checkpoint is complete when every planned subtask has acked this id in this
// attempt; what another attempt reports is dropped.
//
// Red: acks were taken whatever their attempt.
func TestCase_I13(t *testing.T) {
	p0, p1 := checkpoint.SubtaskID{Vertex: "p", Index: 0}, checkpoint.SubtaskID{Vertex: "p", Index: 1}
	epoch := func(attempt uint64) checkpoint.Epoch { return checkpoint.Epoch{Generation: 3, Attempt: attempt} }
	c := checkpoint.NewCoordinator(checkpoint.Config{
		Epoch:    epoch(1),
		Subtasks: []checkpoint.SubtaskPlan{{ID: p0, Source: true}, {ID: p1, Source: true}},
	})
	now := int64(0)
	handle := func(e checkpoint.Event) (as []checkpoint.Action) {
		now++
		return c.Handle(now, e)
	}
	published := func(as []checkpoint.Action) bool {
		for _, a := range as {
			if _, ok := a.(checkpoint.Publish); ok {
				return true
			}
		}
		return false
	}
	handle(checkpoint.Started{})
	handle(checkpoint.SubtaskReady{Subtask: p0})
	handle(checkpoint.SubtaskReady{Subtask: p1})
	handle(checkpoint.TriggerRequested{Token: "t"})
	handle(checkpoint.EnumeratorsSnapshotted{ID: 1})

	ack := func(s checkpoint.SubtaskID, e checkpoint.Epoch, id checkpoint.ID) bool {
		return published(handle(checkpoint.Acked{Ack: checkpoint.Ack{Subtask: s, Epoch: e, ID: id}}))
	}
	for _, tt := range []struct {
		what  string
		s     checkpoint.SubtaskID
		e     checkpoint.Epoch
		id    checkpoint.ID
		whole bool
	}{
		{"p0 of this attempt", p0, epoch(1), 1, false},
		{"p1 of the next attempt", p1, epoch(2), 1, false},
		{"p1 of another generation", p1, checkpoint.Epoch{Generation: 2, Attempt: 1}, 1, false},
		{"p1 of another id", p1, epoch(1), 2, false},
		{"p0 once more", p0, epoch(1), 1, false},
		{"somebody who is not planned", checkpoint.SubtaskID{Vertex: "p", Index: 2}, epoch(1), 1, false},
		{"p1 of this attempt", p1, epoch(1), 1, true},
	} {
		if got := ack(tt.s, tt.e, tt.id); got != tt.whole {
			t.Errorf("after %s: complete is %v", tt.what, got)
		}
	}
	n := c.Counters()
	if n.RefusedAcks != 3 || n.LateAcks != 1 || n.DuplicateAcks != 1 {
		t.Errorf("counted %+v", n)
	}
}
