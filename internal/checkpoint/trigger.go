package checkpoint

import "slices"

// schedule is when the next trigger is due.
type schedule struct {
	ended int64 // when the last checkpoint ended
}

func (c *Coordinator) startSchedule(now int64) []Action {
	if c.cfg.Interval <= 0 {
		return nil
	}
	return []Action{SetTimer{Kind: TimerDue, At: now + int64(c.cfg.Interval)}}
}

// due triggers a checkpoint, or leaves it out. One that comes while another is
// pending is never queued: queued triggers pile up behind a slow one, and the
// epochs between them grow empty or late.
func (c *Coordinator) due(now int64) []Action {
	if c.cfg.Interval <= 0 || c.halt != running || c.stop != nil || c.allEnded() {
		return nil
	}
	next := SetTimer{Kind: TimerDue, At: now + int64(c.cfg.Interval)}
	if len(c.pending) > 0 || c.undecided {
		c.counters.Skipped++
		return []Action{next, ReportSkipped{c.counters.Skipped}}
	}
	if free := c.ended + int64(c.cfg.MinPause); c.ended != 0 && now < free {
		return []Action{SetTimer{Kind: TimerDue, At: free}}
	}
	return append([]Action{next}, c.trigger(now, wish{kind: Periodic})...)
}

func (c *Coordinator) requested(now int64, e TriggerRequested) []Action {
	refuse := func(r Reason, why string) []Action { return []Action{Refused{e.Token, r, why}} }
	switch {
	case c.halt != running || c.stop != nil || c.lastTriggered():
		return refuse(Cancelled, "the job is about to end")
	case e.Savepoint && (c.savepoint != nil || c.pendingKind(Savepoint)):
		return refuse(Busy, "a savepoint is pending")
	case e.Savepoint:
		c.savepoint = &wish{Savepoint, e.Token}
		return nil // triggerWaiting sees to it
	case len(c.pending) > 0:
		return refuse(Busy, "a checkpoint is pending")
	case c.undecided:
		return refuse(Busy, "the log does not answer")
	}
	return c.trigger(now, wish{Periodic, e.Token})
}

func (c *Coordinator) stopRequested(e StopRequested) []Action {
	if c.halt != running || c.stop != nil || c.allEnded() {
		return []Action{Refused{e.Token, Cancelled, "the job is about to end"}}
	}
	w := wish{Periodic, e.Token}
	if e.Savepoint {
		w.kind = Savepoint
	}
	c.stop = &stop{wish: w}
	return []Action{CancelTimer{Kind: TimerDue}}
}

func (c *Coordinator) pendingKind(k Kind) bool {
	return slices.ContainsFunc(c.pending, func(p *pending) bool { return p.kind == k })
}

// lastTriggered says whether the checkpoint that ends the job is on its way or
// in the log. Nothing is triggered behind it: the job would finish beneath it.
func (c *Coordinator) lastTriggered() bool {
	return c.final != 0 || c.pendingKind(Final) || c.stop != nil && c.stop.id != 0
}

// triggerWaiting triggers what waits for its turn: a savepoint, the checkpoint
// of a stop, the final checkpoint, which is retried at once when it fails. The
// enumerators' part of two ids is never taken at the same time, so that their
// triggers leave in the order of the ids.
func (c *Coordinator) triggerWaiting(now int64) []Action {
	if c.halt != running || c.undecided || c.lastTriggered() {
		return nil
	}
	if slices.ContainsFunc(c.pending, func(p *pending) bool { return p.phase == PhaseEnumerators }) {
		return nil
	}
	switch {
	case c.savepoint != nil && !c.pendingKind(Savepoint):
		w := *c.savepoint
		c.savepoint = nil
		return c.trigger(now, w)
	case len(c.pending) > 0:
	case c.allEnded():
		return c.trigger(now, wish{kind: Final})
	case c.stop != nil:
		c.stop.id = c.next
		return c.trigger(now, c.stop.wish)
	}
	return nil
}

// trigger begins a checkpoint. If some subtask is still opening, it is declined
// at once by name, and nobody is bothered with it.
func (c *Coordinator) trigger(now int64, w wish) []Action {
	p := &pending{id: c.next, wish: w, phase: PhaseEnumerators, acks: make(map[SubtaskID]Ack, len(c.order))}
	p.stats = Stats{ID: p.id, Kind: w.kind, Triggered: now}
	c.next++
	var as []Action
	if w.token != "" {
		as = append(as, Triggered{p.id, w.token})
	}
	c.pending = append(c.pending, p)
	if waiting := c.notReady(); len(waiting) > 0 {
		return append(as, c.abort(now, p, Failure{Reason: NotReady, Waiting: waiting})...)
	}
	if c.cfg.Timeout > 0 {
		p.timer = true
		as = append(as, SetTimer{TimerExpire, p.id, now + int64(c.cfg.Timeout)})
	}
	p.held = true
	return append(as, SnapshotEnumerators{p.id, p.kind})
}

// enumerated sends the triggers. From now on every subtask may hear of the id.
func (c *Coordinator) enumerated(now int64, id ID) []Action {
	p := c.find(id)
	if p == nil || p.phase != PhaseEnumerators {
		return nil
	}
	p.phase, p.stats.Enumerated = PhaseAcks, now
	return c.sendTriggers(now, p)
}

// sendTriggers sends the trigger to all who get it by mail and have not yet.
func (c *Coordinator) sendTriggers(now int64, p *pending) []Action {
	var as []Action
	for _, s := range c.order {
		if _, acked := p.acks[s.ID]; acked || p.triggered[s.ID] || !c.triggerable(s) {
			continue
		}
		if p.triggered == nil {
			p.triggered = make(map[SubtaskID]bool)
		}
		p.triggered[s.ID] = true
		bar := Barrier{ID: p.id, Kind: p.kind, AgeNanos: now - p.stats.Triggered}
		as = append(as, SendTrigger{s.ID, Trigger{bar, c.cfg.Epoch}})
	}
	return as
}
