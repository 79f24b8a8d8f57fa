package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
)

// ErrLocked says that another process runs the job.
var ErrLocked = errors.New("the job is running in another process")

// ErrStuck says that a subtask did not stop within the cancel deadline. Its
// goroutine may still act, so the process must end before the job runs again.
var ErrStuck = errors.New("a subtask does not stop")

// Execution is a job being run by this process: the leader of one generation.
//
// All fields below in are owned by whoever steps the inbox.
type Execution struct {
	job  *Job
	opt  *Options
	env  Env
	log  *slog.Logger
	in   *inbox
	done chan struct{} // closed when result and err are final

	ctx     context.Context // of the generation
	cancel  context.CancelCauseFunc
	release func()      // the lock
	unhook  func() bool // the user's context

	chk        *ckptlog.Log
	view       ckptlog.View // what the log says; updated between appends
	logCalls   serial       // calls of chk, one at a time
	trimming   bool
	sinceFloor int
	proved     int64         // when ownership was last proved
	restored   checkpoint.ID // what the first attempt started from
	objects    map[checkpoint.ID]manifestObjects

	att      *attempt
	attempts uint64
	nextID   checkpoint.ID // above every id of earlier attempts
	stopping bool          // the user's context ended, or Stop was called
	opening  bool          // the log is being taken over, no attempt has begun
	restarts restartState
	wishes   wishes
	health   healthState
	metrics  metrics
	repeats  repeats
	failed   []checkpoint.Stats // failed since the last completed one; kept with the next manifest

	littered bool  // an earlier attempt may have left objects behind
	given    error // why the job was given up; nil: it goes on
	started  int64
	finished bool
	result   Result
	err      error
}

// New prepares an execution; nothing happens before Begin.
func New(ctx context.Context, job Job, opt Options) *Execution {
	if opt.Env == nil {
		opt.Env = RealEnv()
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.ChannelCapacity <= 0 {
		opt.ChannelCapacity = 8
	}
	if opt.TrimEvery <= 0 {
		opt.TrimEvery = 64
	}
	if opt.CancelDeadline <= 0 {
		opt.CancelDeadline = 30 * time.Second
	}
	if opt.Checkpoint.GiveUpAppend <= 0 {
		opt.Checkpoint.GiveUpAppend = 30 * time.Second
	}
	if opt.Checkpoint.SyncWarning <= 0 {
		opt.Checkpoint.SyncWarning = time.Second
	}
	job.Specs = slices.Clone(job.Specs)
	for node := range job.Specs {
		v := job.Plan.Vertices[job.Plan.VertexOf[node]]
		job.Specs[node].Meta.Vertex, job.Specs[node].Meta.Parallelism = v.Name, v.Parallelism
	}
	x := &Execution{
		job: &job, opt: &opt, env: opt.Env, log: opt.Log.With("job", job.Name),
		in: newInbox(), done: make(chan struct{}), objects: map[checkpoint.ID]manifestObjects{},
	}
	if opt.Workers == nil {
		opt.Workers = newLocalWorkers(opt.Env)
	}
	x.ctx, x.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	x.unhook = context.AfterFunc(ctx, func() { x.Stop(context.Cause(ctx)) })
	return x
}

// Start runs job until its sources end, ctx ends, or it fails for good.
func Start(ctx context.Context, job Job, opt Options) *Execution {
	x := New(ctx, job, opt)
	x.Begin()
	go func() {
		for !x.finished {
			if !x.in.step() {
				<-x.in.wake
			}
		}
	}()
	return x
}

// Begin starts the generation: the log is taken over and an attempt follows.
func (x *Execution) Begin() {
	x.started = x.env.Now()
	x.open()
}

// Step does one thing that the leader has to do, and says whether there was
// one. It is for whoever drives an execution without Start.
func (x *Execution) Step() bool { return !x.finished && x.in.step() }

// Stop ends the job, as the end of its context does.
func (x *Execution) Stop(cause error) { x.in.post(func() { x.stop(cause) }) }

// Done is closed when the execution has ended.
func (x *Execution) Done() <-chan struct{} { return x.done }

// Wait waits for the end. A stop by the context is not an error.
func (x *Execution) Wait() (Result, error) {
	<-x.done
	return x.result, x.err
}

// Checkpoint takes a checkpoint now and returns its id.
func (x *Execution) Checkpoint(ctx context.Context) (checkpoint.ID, error) {
	type answer struct {
		id  checkpoint.ID
		err error
	}
	ch := make(chan answer, 1)
	x.in.post(func() {
		x.request(func(id checkpoint.ID, err error) { ch <- answer{id, err} })
	})
	select {
	case a := <-ch:
		return a.id, a.err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-x.done:
		select {
		case a := <-ch:
			return a.id, a.err
		default:
			return 0, errors.New("the job has ended")
		}
	}
}

// async runs work off the loop and then, in the loop, then. The context ends
// with the generation.
func (x *Execution) async(name string, work func(ctx context.Context) error, then func(error)) {
	x.env.Go(name, func() {
		err := guard(name, func() error { return work(x.ctx) })
		x.in.post(func() { then(err) })
	})
}

// guard turns a panic of a connector or of ours into an error with its stack.
func guard(name string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: panic: %v\n%s", name, p, debug.Stack())
		}
	}()
	return f()
}

// finish ends the execution for good.
func (x *Execution) finish(err error) {
	if x.finished {
		return
	}
	x.finished = true
	x.result.RestoredFrom = x.restored
	x.result.Restarts = x.restarts.total
	x.result.Elapsed = time.Duration(x.env.Now() - x.started)
	x.err = err
	x.wishes.fail(errEnded)
	x.cancel(errEnded)
	x.unhook()
	if x.release != nil && !errors.Is(err, ErrStuck) {
		// A stuck subtask may still act: the lock goes with the process.
		x.release()
	}
	close(x.done)
}

var errEnded = errors.New("the execution has ended")

// stop ends the job because the user wants it: without a last checkpoint.
func (x *Execution) stop(cause error) {
	if x.stopping || x.finished {
		return
	}
	x.stopping = true
	switch a := x.att; {
	case a == nil && x.opening:
		// It may be about to take the lock, or to commit what a branch has decided.
		x.cancel(cause)
		x.env.After(x.opt.CancelDeadline, func() {
			x.in.post(func() {
				x.finish(fmt.Errorf("%w within %v: taking the job over (stopping because: %w)", ErrStuck, x.opt.CancelDeadline, cause))
			})
		})
	case a == nil:
		x.cancel(cause)
		x.finish(x.given)
	case a.succeeded && x.leave(a):
	case a.ending:
		a.cancel(cause)
		x.watchStuck(a) // it may wait for what no failure bounds
	default:
		x.endAttempt(a, fmt.Errorf("stopped: %w", cause))
	}
}

// fatal ends the job for good, whatever the restart policy says.
func (x *Execution) fatal(err error) {
	if x.finished {
		return
	}
	x.log.Error("job failed", "err", err)
	if x.att == nil {
		x.finish(err)
		return
	}
	// Nothing is appended any more, and nobody waits for what is undecided: the
	// next generation finds out.
	a := x.att
	a.fatal, a.closed = true, true
	x.endAttempt(a, err)
	a.cause = err
	x.tryClose(a)
}

// permanent says whether a restart in this process cannot help.
func permanent(err error) bool {
	return errors.Is(err, ckptlog.ErrFenced) || errors.Is(err, connector.ErrPermanent) || isLost(err) || isDamage(err)
}

// cancelled says whether err comes from the end of ctx, which is ours to want.
func cancelled(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

func (x *Execution) emit(e Event) {
	if x.opt.OnEvent != nil {
		x.opt.OnEvent(e)
	}
}
