package checkpoint

import (
	"fmt"
	"slices"
	"time"
)

// Config is what a Coordinator is made of: one for each attempt.
type Config struct {
	Interval  time.Duration // between triggers; 0: none by time
	Timeout   time.Duration // until a checkpoint expires; 0: never
	MinPause  time.Duration // between the end of one and the trigger of the next
	FailAfter int           // consecutive failures that fail the job; 0 or less: never
	Retain    int           // completed checkpoints to keep, at least 1

	Subtasks []SubtaskPlan
	Epoch    Epoch
	NextID   ID         // above every id in the log and every id of earlier attempts
	Restored ID         // the checkpoint that the attempt starts from; 0: none
	Retained []Retained // what the log holds, Restored included
}

// SubtaskPlan is one subtask of the plan.
type SubtaskPlan struct {
	ID     SubtaskID
	Source bool
	Inputs []SubtaskID // every sender to it
}

// Coordinator decides when a checkpoint is triggered, complete, committed,
// given up, disposable. It belongs to one goroutine: Handle takes one event and
// returns what must be done, in order.
//
// Invariants:
//
//  1. Ids only grow. One checkpoint is pending at a time, plus at most one
//     savepoint, which is triggered after it; none is triggered after a pending
//     savepoint, so that no savepoint is subsumed by a checkpoint.
//  2. One pending id at a time is on its way to the log, from Publish to
//     Appended. Once Append was asked for, nothing gives the id up but
//     AppendVoided: its record may be in the log.
//  3. An id below the newest appended one is never appended.
//  4. Every triggered id ends in exactly one SendComplete or SendAbort, unless
//     the attempt ends or the process is fenced.
//  5. What is not committed, is pinned or is among the newest Retain is never
//     disposed of.
type Coordinator struct {
	cfg      Config
	subtasks map[SubtaskID]*subtask
	order    []*subtask // as in the plan
	next     ID
	pending  []*pending // ascending; at most a checkpoint and a savepoint
	latest   ID         // newest in the log of this chain

	schedule
	failures int // consecutive
	retention

	undecided bool
	savepoint *wish // not triggered yet
	stop      *stop
	halt      halt

	counters CoordinatorCounters
}

// CoordinatorCounters counts what was ignored, and what became of checkpoints.
type CoordinatorCounters struct {
	Completed       int64
	Failed          int64 // every reason, also those that do not count
	Skipped         int64 // triggers due while a checkpoint was pending
	RefusedAcks     int64 // of another epoch, of no planned subtask
	LateAcks        int64 // of ids that are not pending
	DuplicateAcks   int64
	RefusedDeclines int64 // of another epoch, of no planned subtask, of ids that no longer collect
	SinkFailures    int64
}

type subtask struct {
	SubtaskPlan
	ready, ended bool
}

// wish is a user's request that waits until it can be triggered.
type wish struct {
	kind  Kind
	token string
}

type stop struct {
	wish
	id ID // 0: not triggered yet
}

// halt says why nothing more is triggered.
type halt uint8

const (
	running halt = iota
	failing      // FailJob was returned
	closing      // the attempt has ended, an append is in flight
	stopped      // closed, finished or fenced
)

// NewCoordinator returns the coordinator of one attempt. It panics if the plan
// names a subtask twice or an input that is not in it.
func NewCoordinator(cfg Config) *Coordinator {
	cfg.Retain = max(cfg.Retain, 1)
	c := &Coordinator{
		cfg:       cfg,
		subtasks:  make(map[SubtaskID]*subtask, len(cfg.Subtasks)),
		next:      max(cfg.NextID, cfg.Restored+1, 1),
		latest:    cfg.Restored,
		retention: newRetention(cfg),
	}
	for _, plan := range cfg.Subtasks {
		if c.subtasks[plan.ID] != nil {
			panic(fmt.Sprintf("checkpoint: subtask %v is planned twice", plan.ID))
		}
		s := &subtask{SubtaskPlan: plan}
		c.subtasks[plan.ID] = s
		c.order = append(c.order, s)
	}
	for _, s := range c.order {
		for _, in := range s.Inputs {
			c.subtask(in)
		}
	}
	return c
}

// Handle takes one event at a time of day in Unix nanoseconds.
func (c *Coordinator) Handle(now int64, e Event) []Action {
	c.check(e)
	switch c.halt {
	case stopped:
		return nil
	case closing:
		return c.handleClosing(now, e)
	}
	as := c.handle(now, e)
	return append(as, c.triggerWaiting(now)...)
}

func (c *Coordinator) handle(now int64, e Event) []Action {
	switch e := e.(type) {
	case Started:
		return c.startSchedule(now)
	case Due:
		return c.due(now)
	case TimerFired:
		return c.expired(now, e.ID)
	case TriggerRequested:
		return c.requested(now, e)
	case StopRequested:
		return c.stopRequested(e)
	case EnumeratorsSnapshotted:
		return c.enumerated(now, e.ID)
	case EnumeratorsFailed:
		if p := c.find(e.ID); p != nil && p.phase == PhaseEnumerators {
			return c.abort(now, p, Failure{Reason: EnumeratorFailed, Detail: e.Detail})
		}
	case Acked:
		return c.acked(now, e.Ack)
	case DeclinedBy:
		return c.declined(now, e.Decline)
	case Published:
		return c.published(now, e)
	case Appended:
		return c.appended(now, e.ID)
	case AppendVoided:
		return c.voided(now, e)
	case Undecided:
		c.undecided = true
		return []Action{ReportUndecided{e.ID}}
	case SinksCommitted:
		return c.sinksCommitted(e.ID)
	case SinksFailed:
		c.counters.SinkFailures++
	case CommittedAppended:
		return c.committedAppended(now, e.ID)
	case Pinned:
		c.pin(e.ID, true)
	case Unpinned:
		c.pin(e.ID, false)
		return c.dispose()
	case SubtaskReady:
		return c.subtaskReady(e.Subtask)
	case SubtaskEnded:
		return c.subtaskEnded(now, e.Subtask)
	case AttemptEnded:
		return c.attemptEnded(now)
	case Fenced:
		c.halt = stopped
		return []Action{Stop{}}
	default:
		panic(fmt.Sprintf("checkpoint: event %T", e))
	}
	return nil
}

// Counters returns what was counted so far.
func (c *Coordinator) Counters() CoordinatorCounters { return c.counters }

// NextID is the id of the next trigger: the next attempt begins there.
func (c *Coordinator) NextID() ID { return c.next }

// Latest is the newest checkpoint in the log of this chain.
func (c *Coordinator) Latest() ID { return c.latest }

func (c *Coordinator) subtask(id SubtaskID) *subtask {
	s := c.subtasks[id]
	if s == nil {
		panic(fmt.Sprintf("checkpoint: subtask %v is not in the plan", id))
	}
	return s
}

func (c *Coordinator) subtaskReady(id SubtaskID) []Action {
	s := c.subtask(id)
	if s.ready {
		return nil
	}
	s.ready = true
	if len(c.notReady()) > 0 {
		return nil
	}
	return c.confirmRestored()
}

func (c *Coordinator) notReady() []SubtaskID {
	var ids []SubtaskID
	for _, s := range c.order {
		if !s.ready {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// subtaskEnded also helps a checkpoint whose plan has changed: the ended
// subtask sends no barrier any more, so a receiver that has lost its last live
// input gets the trigger by mail. One that has begun already ignores it.
func (c *Coordinator) subtaskEnded(now int64, id SubtaskID) []Action {
	s := c.subtask(id)
	if s.ended {
		return nil
	}
	s.ended = true
	var as []Action
	for _, p := range c.pending {
		if p.phase == PhaseAcks {
			as = append(as, c.sendTriggers(now, p)...)
		}
	}
	if c.allEnded() {
		as = append(as, CancelTimer{Kind: TimerDue})
	}
	return as
}

func (c *Coordinator) allEnded() bool {
	return len(c.order) > 0 && !slices.ContainsFunc(c.order, func(s *subtask) bool { return !s.ended })
}

// triggerable says whether a subtask gets the trigger by mail.
func (c *Coordinator) triggerable(s *subtask) bool {
	return s.Source || !slices.ContainsFunc(s.Inputs, func(in SubtaskID) bool { return !c.subtasks[in].ended })
}

// Pending returns the ids that have not ended.
func (c *Coordinator) Pending() []ID {
	ids := make([]ID, len(c.pending))
	for i, p := range c.pending {
		ids[i] = p.id
	}
	return ids
}

// Decided says whether an id of this attempt has ended, in the log or given up:
// nothing new will refer to the objects that were written for it.
func (c *Coordinator) Decided(id ID) bool { return id < c.next && c.find(id) == nil }
