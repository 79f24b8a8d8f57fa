package checkpoint

import (
	"slices"
	"testing"
	"time"
)

// oneSubtask is the coordinator of a job of one source, and what it asked for.
type oneSubtask struct {
	*Coordinator
	asked []string
}

var only = SubtaskID{Vertex: "in"}

func newOneSubtask(restored ID, retained ...Retained) *oneSubtask {
	return &oneSubtask{Coordinator: NewCoordinator(Config{
		Retain: 3, Restored: restored, Retained: retained, Epoch: Epoch{Generation: 1, Attempt: 1},
		Subtasks: []SubtaskPlan{{ID: only, Source: true}},
	})}
}

func (o *oneSubtask) handle(es ...Event) {
	for _, e := range es {
		for _, a := range o.Handle(int64(time.Second), e) {
			o.asked = append(o.asked, a.String())
		}
	}
}

// final takes the final checkpoint, without committables, up to its record.
func (o *oneSubtask) final(id ID) {
	o.handle(SubtaskEnded{only}, EnumeratorsSnapshotted{id},
		Acked{Ack{ID: id, Epoch: o.cfg.Epoch, Subtask: only}}, Published{ID: id}, Appended{id})
}

// The job must not end above a checkpoint that lacks its Committed record: no
// later start would write it, and it could never be disposed of.
func TestTheJobEndsWhenTheWholeChainIsCommitted(t *testing.T) {
	for _, tt := range []struct {
		name     string
		restored ID
		retained []Retained
		confirm  ID // asked for when all subtasks are ready; 0: nothing
	}{
		{"the restored one is committed", 2, []Retained{{ID: 2, Chain: true, Committed: true}}, 0},
		{"the restored one is not", 2, []Retained{{ID: 2, Chain: true}}, 2},
		{"an older one is not", 2, []Retained{{ID: 1, Chain: true}, {ID: 2, Chain: true, Committed: true}}, 1},
		{"one of a branch that was left is not", 2, []Retained{{ID: 1}, {ID: 2, Chain: true, Committed: true}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOneSubtask(tt.restored, tt.retained...)
			o.handle(SubtaskReady{only})
			if want := (AppendCommitted{tt.confirm}).String(); tt.confirm != 0 && !slices.Contains(o.asked, want) {
				t.Fatalf("asked was %q, want %q", o.asked, want)
			}
			o.final(3)
			end := Finish{ID: 3}.String()
			if early := slices.Contains(o.asked, end); early != (tt.confirm == 0) {
				t.Errorf("ended %v before the record stands: %q", early, o.asked)
			}
			if tt.confirm != 0 {
				o.handle(CommittedAppended{tt.confirm})
				if !slices.Contains(o.asked, end) {
					t.Errorf("not ended: %q", o.asked)
				}
			}
		})
	}
}
