package cluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/task"
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
	littered   bool          // an aborted one may have left objects behind
	collecting bool

	works     int // pieces of work off the loop
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
		switch {
		case a.ending:
		case err != nil && isDamage(err):
			// To a fenced owner, what the new one has collected looks like damage.
			x.logCall("prove ownership of", (*ckptlog.Log).Owned, func(unproved error) {
				if unproved != nil {
					x.endAttempt(a, fmt.Errorf("prepare attempt %v: %v: it is not known whether that is damage: %w", a.epoch, err, unproved))
					return
				}
				x.endAttempt(a, fmt.Errorf("prepare attempt %v: %w", a.epoch, err))
			})
		case err != nil:
			x.endAttempt(a, fmt.Errorf("prepare attempt %v: %w", a.epoch, err))
		default:
			x.launch(a)
		}
	})
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
		if err := r.mapTo(x); err != nil {
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
		x.health.since = r.manifest.Triggered // what a failure now would go back to
		x.metrics.restored(r.manifest.Triggered)
		if r.final() {
			x.endFinal(a)
			return
		}
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
	about := []any{"epoch", a.epoch.String(), "restored", d.Restored, "lineage", a.lineage}
	if a.restored != nil {
		about = append(about, "age", time.Duration(x.env.Now()-a.restored.manifest.Triggered).Round(time.Millisecond))
	}
	x.log.Info("attempt started", about...)
	x.tell(a, checkpoint.Started{})
	x.handOverSplits(a)
	if x.attempts == 1 || x.littered {
		// Otherwise the attempt before has left nothing behind, and restarts in a
		// row do not each list the whole store.
		x.littered = false
		x.collectGarbage(a)
	}
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

// endAttempt stops all subtasks. Why is what the restart policy is told.
func (x *Execution) endAttempt(a *attempt, cause error) {
	if x.att != a || a.ending {
		return
	}
	a.ending, a.cause = true, cause
	for key := range a.timers {
		a.cancelTimer(key)
	}
	a.cancel(cause)
	if a.deployed {
		x.opt.Workers.Kill(cause)
		x.watchStuck(a)
	} else {
		a.stopped = true
	}
	if a.coord != nil {
		x.tell(a, checkpoint.AttemptEnded{})
	} else {
		a.closed = true
		x.tryClose(a)
	}
}

// finishAttempt ends an attempt that has nothing left to do: the subtasks are
// told to close.
func (x *Execution) finishAttempt(a *attempt, f checkpoint.Finish) {
	a.succeeded = true
	for _, s := range a.subtasks {
		x.deliver(a, s.ID, task.Stop{})
	}
	a.ending, a.closed = true, true
	for key := range a.timers {
		a.cancelTimer(key)
	}
	x.watchStuck(a)
}

// endFinal ends an attempt that restored a final checkpoint: what it names is
// committed, and nothing is left to run.
func (x *Execution) endFinal(a *attempt) {
	r := a.restored.entry
	x.emit(Started{Restored: r.ID, Final: true, Epoch: a.epoch})
	end := func() {
		a.ending, a.succeeded, a.stopped, a.closed = true, true, true, true
		x.tryClose(a)
	}
	if !r.Committables || r.Committed {
		end()
		return
	}
	x.appendCommitted(a, ckptlog.Committed{ID: r.ID, Lineage: r.Lineage}, end)
}

// tryClose goes on once nothing of the attempt runs any more.
func (x *Execution) tryClose(a *attempt) {
	if a == nil || x.att != a || x.finished || !a.ending || !a.closed || !a.stopped || a.works > 0 || a.telling {
		return
	}
	if a.succeeded && !a.fatal && !x.logCalls.idle() {
		return // what the last checkpoint made superfluous is still being disposed of
	}
	a.cancel(errEnded)
	x.att = nil
	x.littered = x.littered || a.littered
	if a.coord != nil {
		x.nextID = a.coord.NextID()
	}
	x.wishes.asked, x.wishes.busy = "", false // the next attempt is asked again
	if a.packers != nil {
		a.packers.close()
	}
	x.metrics.settle()
	for _, h := range a.hosts {
		if h != nil && h.enum != nil {
			if err := h.enum.Close(); err != nil {
				x.log.Warn("closing the enumerator failed", "source", h.source, "err", err)
			}
		}
	}
	switch {
	case a.succeeded:
		x.finish(nil)
	case x.stopping && !a.fatal:
		x.finish(nil)
	case a.fatal || permanent(a.cause):
		x.finish(a.cause)
	default:
		x.restart(a)
	}
}

// watchStuck gives the job up if a subtask does not stop: its goroutine may
// still act, so no other attempt may begin in this process.
func (x *Execution) watchStuck(a *attempt) {
	x.env.After(x.opt.CancelDeadline, func() {
		x.in.post(func() {
			if x.att != a || x.finished || a.stopped && a.works == 0 {
				return
			}
			stuck := x.opt.Workers.Stuck()
			err := fmt.Errorf("%w within %v: %s", ErrStuck, x.opt.CancelDeadline, strings.Join(stuck, "; "))
			if a.cause != nil {
				err = fmt.Errorf("%w (stopping because: %w)", err, a.cause)
			}
			x.log.Error("job is stuck; the process must end before it runs again", "err", err, "stacks", stuckStacks())
			x.att = nil
			x.finish(err)
		})
	})
}

// lead carries what subtasks say into the leader's loop.
type lead struct {
	x *Execution
	a *attempt
}

func (l lead) Ready(s checkpoint.SubtaskID, e checkpoint.Epoch) {
	l.post(e, func() { l.x.tell(l.a, checkpoint.SubtaskReady{Subtask: s}) })
}

func (l lead) Ack(k checkpoint.Ack) {
	l.post(k.Epoch, func() { l.x.tell(l.a, checkpoint.Acked{Ack: k}) })
}

func (l lead) Decline(d checkpoint.Decline) {
	l.post(d.Epoch, func() {
		declined := func() { l.x.tell(l.a, checkpoint.DeclinedBy{Decline: d}) }
		if d.ID != l.a.final {
			declined()
			return
		}
		// The coordinator tries a final checkpoint again at once: where its reason
		// comes at once too, such as a full disk, that would spin.
		l.x.env.After(finalPause, func() { l.x.in.post(declined) })
	})
}

func (l lead) Ended(s checkpoint.SubtaskID, e checkpoint.Epoch) {
	l.post(e, func() { l.x.tell(l.a, checkpoint.SubtaskEnded{Subtask: s}) })
}

func (l lead) Failed(s checkpoint.SubtaskID, e checkpoint.Epoch, err error) {
	l.post(e, func() { l.x.endAttempt(l.a, fmt.Errorf("subtask %v: %w", s, err)) })
}

func (l lead) Reserve(s checkpoint.SubtaskID, e checkpoint.Epoch, token uint64, r []operator.Reservation) {
	l.post(e, func() { l.x.reserve(l.a, s, token, r) })
}

// post drops what an older attempt says: its acks, its failures.
func (l lead) post(e checkpoint.Epoch, f func()) {
	l.x.in.post(func() {
		if l.x.att == l.a && e == l.a.epoch {
			f()
		}
	})
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

// restartState counts failures for the restart policy.
type restartState struct {
	total       int
	consecutive int
}

// restart follows the failure of an attempt by the restart policy.
func (x *Execution) restart(a *attempt) {
	p := x.opt.Restart
	if a.completed && p.Reset > 0 && time.Duration(x.env.Now()-a.begun) >= p.Reset {
		x.restarts.consecutive = 0
	}
	if p.Attempts < 0 || p.Attempts > 0 && x.restarts.consecutive >= p.Attempts {
		if p.Attempts > 0 {
			a.cause = fmt.Errorf("failed %d times in a row, the last time: %w", x.restarts.consecutive+1, a.cause)
		}
		x.given = a.cause
		x.collectLast(a, func() { x.finish(a.cause) })
		return
	}
	delay := x.restarts.delay(p, x.env.Nonce()[0])
	x.restarts.consecutive++
	x.restarts.total++
	x.log.Warn("attempt failed, restarting", "epoch", a.epoch.String(), "delay", delay, "restart", x.restarts.total, "err", a.cause)
	x.emit(Restarting{Restart: x.restarts.total, Delay: delay, Cause: a.cause})
	x.env.After(delay, func() {
		x.in.post(func() {
			if x.att == nil && !x.finished {
				x.begin()
			}
		})
	})
}

// delay grows by Factor up to MaxDelay; exponential ones get up to 10 % of
// jitter, so that jobs that failed together do not come back together.
func (r restartState) delay(p RestartPolicy, random byte) time.Duration {
	d := float64(p.Delay)
	for range r.consecutive {
		if d *= p.Factor; d >= float64(p.MaxDelay) && p.MaxDelay > 0 {
			d = float64(p.MaxDelay)
			break
		}
	}
	if p.Factor > 1 {
		d *= 1 + 0.1*float64(random)/255
	}
	return time.Duration(d)
}
