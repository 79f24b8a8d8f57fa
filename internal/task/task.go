package task

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
)

// Task is one subtask of one attempt. Deliver, Wake, Kill, Doing and Counters
// may be called by anyone; Step by one goroutine at a time.
//
//  1. Nothing blocks in Step. What blocks runs on the executor and comes back
//     as mail.
//  2. A barrier is handled between two slices: no user function is on the stack
//     and everything that was emitted stands in the edges before it.
//  3. No record is processed between Begin and the end of the sync phase.
//  4. Operators are closed once, when nothing that they gave to the executor is
//     still running; after that the Task does nothing.
type Task struct {
	cfg    Config
	opt    Options
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	source    operator.Source // nil: the head has inputs
	preparers []preparer
	throttles []operator.Throttle
	timers    []timers

	mail   mailbox
	killed atomic.Bool
	wake   chan struct{}
	parked atomic.Bool

	phase  phase
	since  int64 // when opening or closing began
	opened int   // operators whose Open was called, from the tail
	early  []Mail
	execs  int // work of operators that has not returned
	writes int // snapshots being written

	gate     gate
	slice    slicer
	flushed  int64 // when batches were last sent that were not full
	finished bool  // every operator's Finish was called
	endSent  bool  // the end of input was emitted: nothing follows it

	barriers    *checkpoint.Barriers
	alignments  []alignment
	preparing   *preparing
	snapshots   []*snapshot
	aborted     []checkpoint.ID // the last ones operators were told of
	committed   checkpoint.ID
	reserves    []reserve
	reserveNext uint64

	doing    doing
	counters counters
	waitFor  waiting
}

type preparer struct {
	operator.Preparer
	name string
}

type timers struct {
	operator.Timers
	at int // in Ops
}

// phase is where a subtask is in its life.
type phase uint8

const (
	created phase = iota
	opening       // operators were opened, something they started is outstanding
	running
	ending  // finished; what was emitted has not left yet
	ended   // only mails are handled
	closing // failed, killed or stopped; work on the executor is outstanding
	closed
)

// New returns a subtask. Nothing is opened before the first Step.
func New(cfg Config) (*Task, error) {
	if len(cfg.Ops) == 0 {
		return nil, fmt.Errorf("subtask %v has no operator", cfg.ID)
	}
	if cfg.Context == nil {
		cfg.Context = context.Background()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	t := &Task{
		cfg: cfg, opt: cfg.Options.withDefaults(), log: cfg.Log.With("subtask", cfg.ID.String()),
		wake:     make(chan struct{}, 1),
		barriers: checkpoint.NewBarriers(cfg.Mode, len(cfg.Inputs), checkpoint.BarrierOptions{Restored: cfg.Restored}),
	}
	t.committed = cfg.Restored
	t.ctx, t.cancel = context.WithCancel(cfg.Context)
	source, isSource := cfg.Ops[0].Op.(operator.Source)
	switch {
	case isSource && len(cfg.Inputs) > 0:
		return nil, fmt.Errorf("subtask %v: source %q has inputs", cfg.ID, cfg.Ops[0].Name)
	case !isSource && len(cfg.Inputs) == 0:
		return nil, fmt.Errorf("subtask %v: operator %q has no inputs", cfg.ID, cfg.Ops[0].Name)
	}
	t.source = source
	for _, in := range cfg.Inputs {
		if in.Port < 0 || in.Port >= len(cfg.Entries) {
			return nil, fmt.Errorf("subtask %v: channel from %v leads to input port %d of %d", cfg.ID, in.From, in.Port, len(cfg.Entries))
		}
		in.Ring.NotifyConsumer(t.Wake)
	}
	t.gate.init(cfg.Inputs, cfg.Entries)
	t.slice.init(t.opt.SliceRecords, t.opt.SliceTime)
	for _, e := range cfg.Edges {
		e.Notify(t.Wake)
	}
	for i, op := range cfg.Ops {
		if p, ok := op.Op.(operator.Preparer); ok {
			t.preparers = append(t.preparers, preparer{p, op.Name})
		}
		if th, ok := op.Op.(operator.Throttle); ok {
			t.throttles = append(t.throttles, th)
		}
		if tm, ok := op.Op.(operator.Timers); ok && (op.Restore == nil || !op.Restore.Finished) {
			// One that had ended before the checkpoint leaves unfired what it left then.
			t.timers = append(t.timers, timers{tm, i})
		}
	}
	t.doing.init(cfg.Now())
	return t, nil
}

// Deliver sends mail to the subtask. Mail to one that has stopped is dropped.
func (t *Task) Deliver(m Mail) {
	t.mail.put(m)
	t.Wake()
}

// Kill stops the subtask: its context ends, and it is closed as soon as what it
// has given to the executor returned.
func (t *Task) Kill() {
	t.killed.Store(true)
	t.cancel()
	t.Wake()
}

// Step handles one mail or one slice.
func (t *Task) Step() (st Status) {
	if t.phase == closed {
		return Status{Closed: true}
	}
	defer func() {
		if p := recover(); p != nil {
			t.fail(t.panicked(p))
			st = Status{Worked: true}
		}
	}()
	if t.phase < closing && (t.killed.Load() || t.ctx.Err() != nil) {
		t.stop()
	}
	if t.phase == created {
		t.open()
		return Status{Worked: true}
	}
	if m, ok := t.mail.take(); ok {
		t.handle(m)
		return Status{Worked: true}
	}
	switch t.phase {
	case opening:
		if t.execs > 0 {
			return t.waits(forOpen)
		}
		t.ready()
		return Status{Worked: true}
	case closing:
		if t.execs > 0 || t.writes > 0 {
			return t.waits(forClose)
		}
		t.close()
		return Status{Closed: true}
	}
	return t.work()
}
