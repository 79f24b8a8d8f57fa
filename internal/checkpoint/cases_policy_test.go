package checkpoint_test

import (
	"errors"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// policy drives a Coordinator of three sources from failure to failure.
type policy struct {
	t     *testing.T
	c     *checkpoint.Coordinator
	epoch checkpoint.Epoch
	now   int64
	last  checkpoint.ID // triggered
	fails string        // FailJob's reason; empty: none
	told  []checkpoint.Stats
}

func sub(i int) checkpoint.SubtaskID { return checkpoint.SubtaskID{Vertex: "s", Index: i} }

func newPolicy(t *testing.T, failAfter int) *policy {
	p := &policy{t: t, epoch: checkpoint.Epoch{Generation: 1, Attempt: 1}}
	cfg := checkpoint.Config{Interval: 1, FailAfter: failAfter, Epoch: p.epoch}
	for i := range 3 {
		cfg.Subtasks = append(cfg.Subtasks, checkpoint.SubtaskPlan{ID: sub(i), Source: true})
	}
	p.c = checkpoint.NewCoordinator(cfg)
	p.handle(checkpoint.Started{})
	for i := range 3 {
		p.handle(checkpoint.SubtaskReady{Subtask: sub(i)})
	}
	return p
}

func (p *policy) handle(e checkpoint.Event) {
	p.now++
	for _, a := range p.c.Handle(p.now, e) {
		switch a := a.(type) {
		case checkpoint.SnapshotEnumerators:
			p.last = a.ID
		case checkpoint.FailJob:
			p.fails = a.Reason
		case checkpoint.Report:
			p.told = append(p.told, a.Stats)
		}
	}
}

func (p *policy) trigger() {
	p.handle(checkpoint.Due{})
	p.handle(checkpoint.EnumeratorsSnapshotted{ID: p.last})
}

func (p *policy) decline(subtask int, r checkpoint.Reason) {
	p.handle(checkpoint.DeclinedBy{Decline: checkpoint.Decline{Subtask: sub(subtask), Epoch: p.epoch, ID: p.last, Reason: r}})
}

// steps of a history.
func failed(p *policy)    { p.trigger(); p.decline(0, checkpoint.AsyncFailed) }
func subsumed(p *policy)  { p.trigger(); p.decline(0, checkpoint.Subsumed) }
func taskEnded(p *policy) { p.trigger(); p.decline(0, checkpoint.InputEnded) }

func declinedByAll(p *policy) {
	p.trigger()
	for i := range 3 {
		p.decline(i, checkpoint.AsyncFailed)
	}
}

func completed(p *policy) {
	p.trigger()
	for i := range 3 {
		p.handle(checkpoint.Acked{Ack: checkpoint.Ack{Subtask: sub(i), Epoch: p.epoch, ID: p.last}})
	}
	p.handle(checkpoint.Published{ID: p.last})
	p.handle(checkpoint.Appended{ID: p.last})
}

func unpublished(p *policy) {
	p.trigger()
	for i := range 3 {
		p.handle(checkpoint.Acked{Ack: checkpoint.Ack{Subtask: sub(i), Epoch: p.epoch, ID: p.last}})
	}
	p.handle(checkpoint.Published{ID: p.last, Err: errors.New("403")})
}

// savepoint is one that fails: it uses up an id, and whoever asked is told.
func savepoint(p *policy) {
	p.handle(checkpoint.TriggerRequested{Savepoint: true, Token: "user"})
	p.handle(checkpoint.EnumeratorsSnapshotted{ID: p.last})
	p.decline(1, checkpoint.AsyncFailed)
}

// Which failures count: each id once, whatever the distance of ids, and only a
// completed checkpoint forgets them.
//
// Red: Reason.Counts counted Subsumed (the first line failed at its 3rd event);
// logged did not reset (the second line failed); a decline of an id that had
// ended counted again (one id counted three times); failed savepoints counted.
func TestCase_B03(t *testing.T) {
	type step = func(*policy)
	for _, tt := range []struct {
		name  string
		steps []step
		fails int             // at which step the job fails; 0: at none
		ids   []checkpoint.ID // of the failed ones that count
	}{
		{"subsumed does not count", []step{failed, failed, subsumed, failed}, 4, nil},
		{"completed forgets", []step{failed, failed, completed, failed, failed}, 0, nil},
		{"a subtask's end does not count", []step{failed, taskEnded, failed, taskEnded, failed}, 5, nil},
		{"one id counts once", []step{declinedByAll, declinedByAll}, 0, nil},
		{"the manifest counts", []step{unpublished, failed, unpublished}, 3, nil},
		{"gaps", []step{
			savepoint, savepoint, savepoint, savepoint, failed, savepoint, savepoint, savepoint, failed, savepoint, savepoint, failed,
		}, 12, []checkpoint.ID{5, 9, 12}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPolicy(t, 3) // 2 are tolerated
			for i, step := range tt.steps {
				step(p)
				if fails := p.fails != ""; fails != (tt.fails == i+1) {
					t.Fatalf("step %d: fails the job: %v (%s)", i+1, fails, p.fails)
				}
			}
			var ids []checkpoint.ID
			for _, s := range p.told {
				if s.Failure != nil && s.Failure.Reason.Counts() && s.Kind == checkpoint.Periodic {
					ids = append(ids, s.ID)
				}
			}
			for i, id := range tt.ids {
				if ids[i] != id {
					t.Errorf("counted %d, want %d", ids, tt.ids)
					break
				}
			}
		})
	}
}
