package checkpoint

import (
	"fmt"
	"slices"
)

// Retained is a checkpoint in the log that was not disposed of.
type Retained struct {
	ID ID
	// Chain says that the attempt continues it: it is of the current lineage, or
	// an ancestor of where that began. Confirmations cover only the chain.
	Chain     bool
	Committed bool // every sink has committed all that it names
	Pinned    bool
}

// retention is which checkpoints are kept, and which are committed.
type retention struct {
	keepN      int
	retained   []Retained // ascending
	awaiting   []*pending // in the log and not committed: their report is not over
	final      ID         // the final checkpoint, once in the log
	committing ID         // highest id for which a Committed record was asked
	restored   ID
}

func newRetention(cfg Config) retention {
	r := retention{keepN: cfg.Retain, retained: slices.Clone(cfg.Retained), restored: cfg.Restored}
	slices.SortFunc(r.retained, func(a, b Retained) int { return compareIDs(a.ID, b.ID) })
	return r
}

// keep adds a checkpoint that is in the log. A savepoint belongs to the user:
// it is pinned from the start.
func (r *retention) keep(p *pending) {
	r.retained = append(r.retained, Retained{ID: p.id, Chain: true, Committed: !p.uncommitted, Pinned: p.kind == Savepoint})
	if p.kind == Final {
		r.final = p.id
	}
	if p.uncommitted {
		r.awaiting = append(r.awaiting, p)
	}
}

func (r *retention) pin(id ID, pinned bool) {
	for i := range r.retained {
		if r.retained[i].ID == id {
			r.retained[i].Pinned = pinned
		}
	}
}

func (r *retention) isCommitted(id ID) bool {
	return slices.ContainsFunc(r.retained, func(x Retained) bool { return x.ID == id && x.Committed })
}

// uncommitted is the newest checkpoint of the chain up to id that is not
// committed; 0: none.
func (r *retention) uncommitted(id ID) ID {
	for _, x := range slices.Backward(r.retained) {
		if x.Chain && !x.Committed && x.ID <= id {
			return x.ID
		}
	}
	return 0
}

// confirmRestored runs when all subtasks are ready: their sinks have committed
// what the restored checkpoint names before they opened, and it names all that
// was not committed before it. An older one is confirmed by its own id, as the
// restored one may have no committables: the log would say that sinks have
// committed output behind the older one.
func (c *Coordinator) confirmRestored() []Action {
	if id := c.uncommitted(c.restored); id != 0 {
		return c.sinksCommitted(id)
	}
	return nil
}

// sinksCommitted asks for the record that everything up to id is committed.
func (c *Coordinator) sinksCommitted(id ID) []Action {
	if id > c.latest {
		panic(fmt.Sprintf("checkpoint: sinks committed %d, newest in the log is %d", id, c.latest))
	}
	if id <= c.committing || c.isCommitted(id) {
		return nil
	}
	c.committing = id
	return []Action{AppendCommitted{id}}
}

// committedAppended marks what the record covers, on the chain only.
func (c *Coordinator) committedAppended(now int64, id ID) []Action {
	if id > c.committing {
		panic(fmt.Sprintf("checkpoint: Committed(%d) is in the log, asked was %d", id, c.committing))
	}
	c.undecided = false
	for i := range c.retained {
		if x := &c.retained[i]; x.Chain && x.ID <= id {
			x.Committed = true
		}
	}
	as := []Action{SendCommitted{Committed{id, c.cfg.Epoch}}}
	for len(c.awaiting) > 0 && c.awaiting[0].id <= id {
		p := c.awaiting[0]
		c.awaiting = c.awaiting[1:]
		p.stats.Committed = now
		as = append(as, Report{p.snapshotStats()})
	}
	as = append(as, c.dispose()...)
	return append(as, c.finish()...)
}

// dispose drops what is older than the newest keepN checkpoints of the chain.
// Savepoints are not among these: the newest ordinary checkpoint is the base of
// the next increment, whatever savepoint came after it. A branch that was left
// by a restore goes when the chain alone has enough.
func (r *retention) dispose() []Action {
	cut, n := ID(0), 0
	for _, x := range slices.Backward(r.retained) {
		if x.Chain && !x.Pinned {
			cut = x.ID
			if n++; n == r.keepN {
				break
			}
		}
	}
	if n < r.keepN {
		return nil
	}
	var ids []ID
	r.retained = slices.DeleteFunc(r.retained, func(x Retained) bool {
		old := x.ID < cut && x.Committed && !x.Pinned
		if old {
			ids = append(ids, x.ID)
		}
		return old
	})
	if len(ids) == 0 {
		return nil
	}
	return []Action{Dispose{ids}}
}
