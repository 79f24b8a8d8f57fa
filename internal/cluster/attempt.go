package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
)

// attempt is one run of all subtasks. It passes through prepare (off the loop),
// deployed, ending and closed; the next one begins only when nothing of it runs
// any more and no append of it is undecided.
type attempt struct {
	epoch   checkpoint.Epoch
	lineage uint64
	ctx     context.Context
	cancel  context.CancelCauseFunc
	begun   int64

	restored *restoredCheckpoint // nil: started empty
	subtasks []checkpoint.SubtaskPlan
	hosts    []*splitHost // by node; nil: not a source
	enum     serial       // calls of enumerators
	enumAt   map[checkpoint.ID]enumerators

	coord     *checkpoint.Coordinator
	events    []checkpoint.Event
	telling   bool
	timers    map[timerKey]func()
	packers   *packers
	manifests map[checkpoint.ID]*publishedManifest
	final     checkpoint.ID // the newest final checkpoint; 0: none yet
	ready     int           // subtasks

	committing serial
	reserves   reserveQueue
	// view is what the log said when the attempt began. It is prepared off the
	// loop, where x.view must not be read.
	view       ckptlog.View
	completed  bool          // a checkpoint was completed in this attempt
	reported   checkpoint.ID // the newest that was told to be complete
	undecided  checkpoint.ID // the newest of which the log did not say whether it has it
	littered   bool          // an aborted one may have left objects behind
	collecting bool

	works     int  // pieces of work off the loop
	unpacked  bool // packers is closed, or being closed
	deployed  bool
	stopped   bool // the workers say that nothing runs any more
	ending    bool
	closed    bool // the coordinator says that nothing can reach the log any more
	succeeded bool // the final checkpoint is in the log and committed
	fatal     bool
	cause     error
}

// begin prepares the next attempt.
func (x *Execution) begin() {
	x.attempts++
	a := &attempt{
		epoch:     checkpoint.Epoch{Generation: x.chk.Generation(), Attempt: x.attempts},
		lineage:   x.view.Lineage,
		view:      x.view,
		begun:     x.env.Now(),
		hosts:     make([]*splitHost, len(x.job.Specs)),
		enumAt:    map[checkpoint.ID]enumerators{},
		timers:    map[timerKey]func(){},
		manifests: map[checkpoint.ID]*publishedManifest{},
	}
	a.ctx, a.cancel = context.WithCancelCause(x.ctx)
	a.subtasks = planSubtasks(x.job)
	x.att = a
	var point *ckptlog.Retained
	if latest, ok := x.view.Latest(); ok {
		point = &latest
	}
	x.inAttempt(a, "prepare attempt", func(ctx context.Context) error {
		return x.prepare(ctx, a, point)
	}, func(err error) {
		if err != nil {
			err = fmt.Errorf("prepare attempt %v: %w", a.epoch, err)
		}
		switch {
		case a.ending && x.stopping && permanent(err) && !cancelled(a.ctx, err):
			// It has nothing to do with the stop: the next start would meet it again.
			a.fatal, a.cause = true, err
		case a.ending:
		case err != nil && isDamage(err):
			x.endDamaged(a, err)
		case err != nil:
			x.endAttempt(a, err)
		default:
			x.launch(a)
		}
	})
}

// endDamaged ends an attempt that has met damage, once the log has proved that
// it is damage: to a fenced owner, what the new one has collected looks like it.
func (x *Execution) endDamaged(a *attempt, err error) {
	x.logCall("prove ownership of", (*ckptlog.Log).Owned, func(unproved error) {
		if unproved != nil {
			err = fmt.Errorf("%v: it is not known whether that is damage: %w", err, unproved)
		}
		x.endAttempt(a, err)
	})
}

// subtaskFailed ends an attempt of which a subtask has failed. Until all are
// ready the only objects that they read are those of the restored checkpoint.
func (x *Execution) subtaskFailed(a *attempt, s checkpoint.SubtaskID, err error) {
	if a.restored != nil && a.ready < len(a.subtasks) && !a.ending && errors.Is(err, statefile.ErrCorrupt) {
		x.endDamaged(a, fmt.Errorf("subtask %v: %w", s, a.withRemedy(err, a.restored.entry.ID)))
		return
	}
	x.endAttempt(a, fmt.Errorf("subtask %v: %w", s, err))
}

// prepare does all that blocks before subtasks start, in this order: the
// checkpoint is read and checked, what it names is committed and all else of
// older attempts is dropped, and only then are enumerators and writers made.
func (x *Execution) prepare(ctx context.Context, a *attempt, point *ckptlog.Retained) error {
	var pending sinkCommittables
	if point != nil {
		r, err := x.readCheckpoint(ctx, *point)
		if err != nil {
			return a.withRemedy(err, point.ID)
		}
		if err := r.mapTo(x, a.epoch.Attempt == 1); err != nil {
			return err
		}
		a.restored, pending = r, r.committables
	}
	if err := x.recoverSinks(ctx, a.epoch, a.lineage, pending); err != nil {
		return err
	}
	if a.restored != nil && a.restored.final() {
		return nil // there is nothing left to run
	}
	return x.openSources(ctx, a)
}

// withRemedy says what else there is to start from when a checkpoint is damaged.
// Nothing goes back to an older one by itself: what is lost by it is for the
// user to judge.
func (a *attempt) withRemedy(err error, id checkpoint.ID) error {
	if !isDamage(err) {
		return err
	}
	var older []checkpoint.ID
	for _, r := range a.view.Retained() {
		if r.ID != id {
			older = append(older, r.ID)
		}
	}
	return fmt.Errorf("checkpoint %d: %w (others that are kept: %v; -from ID starts from one of them, -fresh from nothing)", id, err, older)
}

// launch deploys the subtasks. Once all are ready the coordinator asks for the
// record that the restored checkpoint is committed.
func (x *Execution) launch(a *attempt) {
	if r := a.restored; r != nil {
		x.objects[r.entry.ID] = r.objects()
		if x.attempts == 1 {
			x.restored = r.entry.ID
		}
		x.result.Records = r.records()
		x.metrics.restored(r.manifest.Triggered) // what a failure now would go back to
		if r.final() {
			x.endFinal(a)
			return
		}
	} else if x.result.Records == nil {
		x.result.Records = map[string]int64{} // there is no checkpoint: it is known to be none
	}
	a.coord = checkpoint.NewCoordinator(x.coordinatorConfig(a))
	a.packers = newPackers(x, a)
	d := &Deployment{
		Job: x.job, Options: x.opt, Epoch: a.epoch, Lineage: a.lineage, HashSeed: x.view.HashSeed,
		Context: a.ctx, Lead: lead{x, a}, Packers: a.packers,
		Restore:  func(node, subtask int) *operator.Restore { return a.restored.operator(node) },
		Instance: x.instance, Metrics: &x.metrics,
		Stopped: func() {
			x.in.post(func() {
				a.stopped = true
				x.tryClose(a)
			})
		},
	}
	if a.restored != nil {
		d.Restored = a.restored.entry.ID
	}
	a.deployed = true
	if err := x.opt.Workers.Deploy(d); err != nil {
		a.stopped = true
		x.endAttempt(a, fmt.Errorf("deploy attempt %v: %w", a.epoch, err))
		return
	}
	x.emit(Started{Restored: d.Restored, Epoch: a.epoch})
	x.log.Debug("attempt opens", "epoch", a.epoch.String(), "from", d.Restored, "lineage", a.lineage)
	x.tell(a, checkpoint.Started{})
	x.handOverSplits(a)
	if x.attempts == 1 || x.littered {
		// Otherwise the attempt before has left nothing behind, and restarts in a
		// row do not each list the whole store.
		x.littered = false
		x.collectGarbage(a)
	}
}

// running is called when all subtasks have restored and are open: only now is
// it true that the attempt goes on from its checkpoint.
func (x *Execution) running(a *attempt) {
	e := Running{Epoch: a.epoch}
	about := []any{"epoch", a.epoch.String()}
	if r := a.restored; r != nil {
		e.Restored = r.entry.ID
		about = append(about, "restored", r.entry.ID, "lineage", a.lineage,
			"age", time.Duration(x.env.Now()-r.manifest.Triggered).Round(time.Millisecond))
	} else {
		about = append(about, "restored", 0, "lineage", a.lineage)
	}
	x.health.running(x.env.Now())
	x.emit(e)
	x.log.Info("attempt started", about...)
}

func (x *Execution) coordinatorConfig(a *attempt) checkpoint.Config {
	c := x.opt.Checkpoint
	cfg := checkpoint.Config{
		Interval: max(c.Interval, 0), Timeout: c.Timeout, MinPause: c.MinPause,
		FailAfter: c.FailAfter, Retain: c.Retain, Subtasks: a.subtasks,
		NextID: max(x.view.NextID(), x.nextID), Epoch: a.epoch,
	}
	if a.restored != nil {
		cfg.Restored = a.restored.entry.ID
	}
	for _, r := range x.view.Retained() {
		cfg.Retained = append(cfg.Retained, checkpoint.Retained{
			ID: r.ID, Chain: x.view.Continues(r), Committed: r.Committed || !r.Committables, Pinned: x.view.Pinned(r.ID),
		})
	}
	return cfg
}

// planSubtasks lists all subtasks of a job and what the coordinator needs to
// know of them.
func planSubtasks(j *Job) []checkpoint.SubtaskPlan {
	var out []checkpoint.SubtaskPlan
	for _, v := range j.Plan.Vertices {
		for i := range v.Parallelism {
			p := checkpoint.SubtaskPlan{ID: checkpoint.SubtaskID{Vertex: v.Name, Index: i}}
			p.Source = j.Plan.Graph.Nodes[v.Nodes[0]].Source != nil
			for _, e := range v.In {
				from := j.Plan.Vertices[j.Plan.VertexOf[j.Plan.Graph.Edges[e].From]]
				if j.Plan.Kinds[e] == graph.Forward {
					p.Inputs = append(p.Inputs, checkpoint.SubtaskID{Vertex: from.Name, Index: i})
					continue
				}
				for k := range from.Parallelism {
					p.Inputs = append(p.Inputs, checkpoint.SubtaskID{Vertex: from.Name, Index: k})
				}
			}
			out = append(out, p)
		}
	}
	return out
}
