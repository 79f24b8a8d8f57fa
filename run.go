package staunch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage"
)

// Result is what a run did.
type Result struct {
	RestoredFrom CheckpointID // 0: started empty
	// Checkpoints is how many this process completed: their records are in the
	// log. What they name is committed when the sources have ended; of a run that
	// was stopped, the newest may be left to the next start to commit.
	Checkpoints int
	Restarts    int
	// Records are by source and sink name, over the life of the job, those of the
	// newest completed checkpoint: what it names is committed as Checkpoints says.
	// nil: the run was stopped before it knew of any.
	Records map[string]int64
	Elapsed time.Duration
}

// Run runs a job in this process until its sources end, ctx ends, or it fails
// for good. The end of ctx stops the job without a last checkpoint and is not
// an error. When the sources have ended, no error means that everything is
// committed and recorded; a store that stops answering behind that is waited for
// no longer than 30 s.
func Run(ctx context.Context, j *Job, o Options) (Result, error) {
	e, err := Start(ctx, j, o)
	if err != nil {
		return Result{}, err
	}
	return e.Wait()
}

// Execution is a running job.
type Execution struct {
	x     *cluster.Execution
	store storage.Store
	close sync.Once
}

// Start starts a job in this process.
func Start(ctx context.Context, j *Job, o Options) (*Execution, error) {
	p, err := j.Plan(o)
	if err != nil {
		return nil, err
	}
	return j.start(ctx, p)
}

// start runs a plan of the job.
func (j *Job) start(ctx context.Context, p *Plan) (*Execution, error) {
	if err := p.require(p.options.Require); err != nil {
		return nil, err
	}
	if p.options.Storage == "" {
		return nil, fmt.Errorf("job %q: no Storage for its checkpoints", j.name)
	}
	store, err := storage.Open(ctx, p.options.Storage)
	if err != nil {
		return nil, fmt.Errorf("job %q: %w", j.name, err)
	}
	if p.options.Log != nil {
		p.options.Log.Info("plan", "job", j.name, "mode", p.options.Mode, "delivered", p.Delivered)
	}
	return &Execution{x: cluster.Start(ctx, j.runnable(p), p.options.cluster(store)), store: store}, nil
}

// runnable is the job as the cluster takes it.
func (j *Job) runnable(p *Plan) cluster.Job {
	return cluster.Job{Name: j.name, Plan: p.graph, Specs: j.specs(p.graph), EdgeHash: j.edgeHashes()}
}

// cluster are complete options as the cluster takes them.
func (o Options) cluster(store storage.Store) cluster.Options {
	from, _ := o.from() // the plan has refused a wrong one
	c := cluster.Options{
		Store: store,
		Mode:  checkpoint.Mode(o.Mode),
		Checkpoint: cluster.CheckpointOptions{
			Interval: o.Checkpoint.Interval, Timeout: o.Checkpoint.Timeout, MinPause: o.Checkpoint.MinPause,
			FailAfter: o.Checkpoint.FailAfter, Retain: o.Checkpoint.Retain, Inline: o.Checkpoint.Inline,
		},
		Restart: cluster.RestartPolicy(o.Restart),
		From:    from, Fresh: o.Fresh, Takeover: o.Takeover, AcceptRepeats: o.AcceptRepeats, DropState: o.DropState,
		Log:   o.Log,
		Owner: owner(),
	}
	if l, ok := store.(locker); ok {
		c.Lock = func() (func(), error) { return l.Lock("owner") }
	}
	if o.OnEvent != nil {
		c.OnEvent = func(e cluster.Event) {
			if e := event(e); e != nil {
				o.OnEvent(e)
			}
		}
	}
	return c
}

// owner says who this process is, for the log and for messages.
func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// event is a cluster's event as the user sees it; nil: not told.
func event(e cluster.Event) Event {
	switch e := e.(type) {
	case cluster.Started:
		if e.Final {
			return Restored{ID: CheckpointID(e.Restored), Final: true}
		}
	case cluster.Running:
		if e.Restored != 0 {
			return Restored{ID: CheckpointID(e.Restored)}
		}
	case cluster.Fresh:
		return Fresh(e)
	case cluster.Checkpointed:
		return Checkpointed{ID: CheckpointID(e.Stats.ID), Duration: time.Duration(e.Stats.Appended - e.Stats.Triggered), Bytes: e.Stats.Bytes}
	case cluster.CheckpointFailed:
		return CheckpointFailed{ID: CheckpointID(e.Stats.ID), Reason: failure(e.Stats.Failure)}
	case cluster.Restarting:
		return Restarting{Attempt: e.Restart, Cause: e.Cause}
	}
	return nil
}

// failure says why a checkpoint failed and whom it waited for.
func failure(f *checkpoint.Failure) error {
	if f == nil {
		return errors.New("unknown reason")
	}
	text := f.Reason.String()
	if f.Subtask != nil {
		text += fmt.Sprintf(" by %v", *f.Subtask)
	}
	if f.Detail != "" {
		text += ": " + f.Detail
	}
	text += fmt.Sprintf(", in phase %v", f.Phase)
	if len(f.Waiting) > 0 {
		text += fmt.Sprintf(", waiting for %v", f.Waiting)
	}
	return errors.New(text)
}

// Wait waits for the end, and closes what the run has opened.
func (e *Execution) Wait() (Result, error) {
	r, err := e.x.Wait()
	e.close.Do(func() {
		// A subtask that is stuck may still use the store: it ends with the process.
		if c, ok := e.store.(io.Closer); ok && !errors.Is(err, cluster.ErrStuck) {
			if closed := c.Close(); err == nil {
				err = closed
			}
		}
	})
	return Result{
		RestoredFrom: CheckpointID(r.RestoredFrom), Checkpoints: r.Checkpoints, Restarts: r.Restarts,
		Records: r.Records, Elapsed: r.Elapsed,
	}, err
}

// Checkpoint takes a checkpoint now and returns its id.
func (e *Execution) Checkpoint(ctx context.Context) (CheckpointID, error) {
	id, err := e.x.Checkpoint(ctx)
	return CheckpointID(id), err
}

// Metrics returns the numbers of the execution by name, summed over subtasks:
// "OPERATOR.records" of sources and sinks, "OPERATOR.NAME" of a processor's
// counters, "checkpoints.completed", ".failed", ".skipped", ".last_id",
// ".last_bytes", ".last_duration_ns" and ".age_ns" (of the newest one, also one
// that an earlier process took), and "subtask.CHAIN/INDEX.*". They count from the
// start of this process. To publish them:
//
//	expvar.Publish("orders", expvar.Func(func() any { return x.Metrics() }))
func (e *Execution) Metrics() map[string]int64 { return e.x.Metrics() }
