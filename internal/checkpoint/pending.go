package checkpoint

import (
	"fmt"
	"slices"
)

// pending is a checkpoint between its trigger and its end.
type pending struct {
	wish
	id        ID
	phase     Phase
	timer     bool               // TimerExpire is set
	held      bool               // enumerators were asked, assignments are held
	triggered map[SubtaskID]bool // by mail
	acks      map[SubtaskID]Ack
	stats     Stats
	// uncommitted is known at Publish: some sink's ack has committables.
	uncommitted bool
}

func (c *Coordinator) find(id ID) *pending {
	for _, p := range c.pending {
		if p.id == id {
			return p
		}
	}
	return nil
}

// acked takes an ack of a planned subtask for this epoch and a pending id:
// everything else is what some other attempt or an ended checkpoint left over.
func (c *Coordinator) acked(now int64, a Ack) []Action {
	if a.Epoch != c.cfg.Epoch || c.subtasks[a.Subtask] == nil {
		c.counters.RefusedAcks++
		return nil
	}
	p := c.find(a.ID)
	if p == nil || p.phase == PhaseEnumerators {
		c.counters.LateAcks++
		return nil
	}
	if _, ok := p.acks[a.Subtask]; ok {
		c.counters.DuplicateAcks++
		return nil
	}
	p.acks[a.Subtask] = a
	p.stats.Bytes += a.Stats.Bytes
	a.Stats.Subtask, a.Stats.Acked = a.Subtask, now
	p.stats.Subtasks = append(p.stats.Subtasks, a.Stats)
	var as []Action
	if c.subtasks[a.Subtask].Source {
		as = append(as, ReleaseAssignments{p.id, a.Subtask})
	}
	if len(p.acks) == len(c.order) {
		p.stats.LastAck = now
		as = append(as, c.publish()...)
	}
	return as
}

// publish sends the oldest fully acknowledged id on its way to the log, one at
// a time: the parent of the next is known only when this one is decided.
func (c *Coordinator) publish() []Action {
	for _, p := range c.pending {
		if p.phase == PhasePublish || p.phase == PhaseAppend {
			return nil
		}
	}
	for _, p := range c.pending {
		if p.phase != PhaseAcks || p.stats.LastAck == 0 {
			continue
		}
		p.phase = PhasePublish
		acks := make([]Ack, 0, len(c.order))
		for _, s := range c.order {
			a := p.acks[s.ID]
			acks = append(acks, a)
			for _, op := range a.Operators {
				p.uncommitted = p.uncommitted || len(op.Committables) > 0
			}
		}
		return []Action{Publish{p.id, p.kind, c.latest, p.uncommitted, acks, p.snapshotStats()}}
	}
	return nil
}

func (c *Coordinator) published(now int64, e Published) []Action {
	p := c.find(e.ID)
	if p == nil || p.phase != PhasePublish {
		return nil // given up meanwhile: no record will name the manifest
	}
	if e.Err != nil {
		return c.abort(now, p, Failure{Reason: PublishFailed, Detail: e.Err.Error()})
	}
	p.phase, p.stats.Published = PhaseAppend, now
	return []Action{Append{p.id, p.kind, c.latest, p.uncommitted}}
}

// appending returns the id whose record is in flight, and panics if it is
// another.
func (c *Coordinator) appending(id ID) *pending {
	p := c.find(id)
	if p == nil || p.phase != PhaseAppend {
		panic(fmt.Sprintf("checkpoint: outcome of an append of %d in state %s", id, c.State()))
	}
	return p
}

// appended is the commit point: the checkpoint counts. Lower pending ids are
// voided, since a restart restores the newest.
func (c *Coordinator) appended(now int64, id ID) []Action {
	p := c.appending(id)
	c.undecided = false
	var as []Action
	if p.timer {
		as = append(as, CancelTimer{TimerExpire, id})
	}
	as = append(as, SendComplete{Complete{id, c.cfg.Epoch}})
	as = append(as, c.logged(now, p)...)
	for _, old := range slices.Clone(c.pending) {
		if old.id < id {
			as = append(as, c.abort(now, old, Failure{Reason: Subsumed, Detail: fmt.Sprintf("%d is in the log", id)})...)
		}
	}
	if p.uncommitted {
		as = append(as, CommitSinks{id})
	}
	as = append(as, c.dispose()...)
	as = append(as, c.publish()...)
	return append(as, c.finish()...)
}

// logged notes that a record is in the log.
func (c *Coordinator) logged(now int64, p *pending) []Action {
	c.remove(p)
	c.latest, c.ended, c.failures = p.id, now, 0
	c.counters.Completed++
	p.stats.Appended = now
	if !p.uncommitted {
		p.stats.Committed = now
	}
	c.keep(p)
	return []Action{Report{p.snapshotStats()}}
}

func (c *Coordinator) voided(now int64, e AppendVoided) []Action {
	p := c.appending(e.ID)
	c.undecided = false
	return c.abort(now, p, Failure{Reason: AppendFailed, Detail: e.Err.Error()})
}

// declined gives the checkpoint up at once: waiting for the timeout would keep
// channels blocked for an id that cannot complete.
func (c *Coordinator) declined(now int64, d Decline) []Action {
	p := c.find(d.ID)
	if d.Epoch != c.cfg.Epoch || c.subtasks[d.Subtask] == nil || p == nil || p.phase != PhaseAcks {
		c.counters.RefusedDeclines++
		return nil
	}
	return c.abort(now, p, Failure{Reason: d.Reason, Detail: d.Detail, Subtask: &d.Subtask})
}

// expired gives up what takes too long, unless its record may be in the log.
func (c *Coordinator) expired(now int64, id ID) []Action {
	p := c.find(id)
	if p == nil {
		return nil
	}
	p.timer = false
	if p.phase == PhaseAppend {
		return nil
	}
	return c.abort(now, p, Failure{Reason: Expired})
}

// abort gives up a pending checkpoint and tells everyone.
func (c *Coordinator) abort(now int64, p *pending, f Failure) []Action {
	var as []Action
	if p.timer {
		as = append(as, CancelTimer{TimerExpire, p.id})
	}
	if p.phase > PhaseEnumerators { // before, no subtask has heard of it
		as = append(as, SendAbort{Abort{p.id, c.cfg.Epoch, c.latest, f.Reason}})
	}
	as = append(as, c.release(p)...)
	as = append(as, c.fail(now, p, f)...)
	as = append(as, c.afterFailure(p, f)...)
	return append(as, c.publish()...)
}

// release lets go the assignments that are still held for p.
func (c *Coordinator) release(p *pending) []Action {
	if !p.held {
		return nil
	}
	var as []Action
	for _, s := range c.order {
		if _, acked := p.acks[s.ID]; s.Source && !acked {
			as = append(as, ReleaseAssignments{p.id, s.ID})
		}
	}
	return as
}

// fail removes p and reports why.
func (c *Coordinator) fail(now int64, p *pending, f Failure) []Action {
	c.remove(p)
	c.counters.Failed++
	if f.Reason != NotReady {
		c.ended = now
	}
	f.Phase, f.At = p.phase, now
	if p.phase == PhaseAcks {
		for _, s := range c.order {
			if _, ok := p.acks[s.ID]; !ok {
				f.Waiting = append(f.Waiting, s.ID)
			}
		}
	}
	p.stats.Failure = &f
	return []Action{Report{p.snapshotStats()}}
}

func (c *Coordinator) remove(p *pending) {
	c.pending = slices.DeleteFunc(c.pending, func(q *pending) bool { return q == p })
}

// snapshotStats is a copy with the subtasks in ascending order.
func (p *pending) snapshotStats() Stats {
	s := p.stats
	s.Subtasks = slices.Clone(s.Subtasks)
	slices.SortFunc(s.Subtasks, func(a, b SubtaskStats) int { return compareSubtasks(a.Subtask, b.Subtask) })
	return s
}
