package checkpoint

import "slices"

// attemptEnded drops what cannot reach the log any more. An append in flight
// can: only when it is decided may a restart choose what to restore.
func (c *Coordinator) attemptEnded(now int64) []Action {
	as := []Action{CancelTimer{Kind: TimerDue}}
	for _, p := range slices.Clone(c.pending) {
		as = append(as, CancelTimer{TimerExpire, p.id})
		if p.phase == PhaseAppend {
			continue
		}
		f := Failure{Reason: Cancelled, Detail: "the attempt ended"}
		as = append(as, c.fail(now, p, f)...)
		if p.token != "" {
			as = append(as, Refused{p.token, f.Reason, f.Detail})
		}
	}
	as = append(as, c.refuseWishes(Cancelled, "the attempt ended")...)
	c.halt = closing
	return append(as, c.closed()...)
}

// closed ends the attempt once no append is in flight.
func (c *Coordinator) closed() []Action {
	if len(c.pending) > 0 {
		return nil
	}
	c.halt = stopped
	return []Action{Closed{c.latest}}
}

// handleClosing takes the events that decide an append; nobody is left to be
// told of the outcome.
func (c *Coordinator) handleClosing(now int64, e Event) []Action {
	switch e := e.(type) {
	case Appended:
		p := c.appending(e.ID)
		as := c.logged(now, p)
		return append(as, c.closed()...)
	case AppendVoided:
		p := c.appending(e.ID)
		as := c.fail(now, p, Failure{Reason: AppendFailed, Detail: e.Err.Error()})
		return append(as, c.closed()...)
	case Undecided:
		return []Action{ReportUndecided{e.ID}}
	case Fenced:
		c.halt = stopped
		return []Action{Stop{}}
	}
	return nil
}

func (c *Coordinator) refuseWishes(r Reason, detail string) []Action {
	var as []Action
	if c.savepoint != nil {
		as = append(as, Refused{c.savepoint.token, r, detail})
		c.savepoint = nil
	}
	if c.stop != nil && c.stop.id == 0 {
		as = append(as, Refused{c.stop.token, r, detail})
		c.stop = nil
	}
	return as
}
