package checkpoint

import "fmt"

// afterFailure decides what a failure means for the job. An id comes here at
// most once, so that many declines of one id count once. Savepoints do not
// count: whoever asked for one is told.
func (c *Coordinator) afterFailure(p *pending, f Failure) []Action {
	if c.stop != nil && c.stop.id == p.id {
		// The older checkpoints stand; the shell may end the job on them.
		c.halt = stopped
		return []Action{Finish{Detail: fmt.Sprintf("checkpoint %d: %s", p.id, f)}}
	}
	if p.kind == Savepoint && f.Reason == Subsumed {
		c.savepoint = &p.wish // again, under another id
		return nil
	}
	var as []Action
	if p.token != "" {
		as = append(as, Refused{p.token, f.Reason, p.stats.Failure.String()})
	}
	if p.kind == Savepoint || !f.Reason.Counts() {
		return as
	}
	c.failures++
	if c.cfg.FailAfter <= 0 || c.failures < c.cfg.FailAfter || c.halt != running {
		return as
	}
	c.halt = failing
	failures := "failures"
	if c.failures == 1 {
		failures = "failure"
	}
	return append(as, FailJob{fmt.Sprintf("%d consecutive checkpoint %s, last: %s", c.failures, failures, p.stats.Failure)})
}

// finish ends the job when its last checkpoint is in the log and committed, and
// with it every older one of the chain. A last checkpoint without committables
// says by itself that sinks have committed all that older ones name; but the
// record that says so of the restored one may still be on its way, and a
// checkpoint without it could never be disposed of.
func (c *Coordinator) finish() []Action {
	last := c.final
	if c.stop != nil && c.stop.id != 0 {
		last = max(last, c.stop.id)
	}
	if last == 0 || !c.isCommitted(last) || c.uncommitted(last) != 0 {
		return nil
	}
	c.halt = stopped
	return append(c.refuseWishes(Cancelled, "the job has ended"), Finish{ID: last})
}
