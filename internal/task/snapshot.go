package task

import (
	"context"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
)

// snapshot is a checkpoint whose sync phase is over and whose async phase is
// not: each operator's part is written by work of its own.
type snapshot struct {
	id      checkpoint.ID
	ctx     context.Context
	cancel  context.CancelFunc
	parts   []operator.Snapshot      // by operator; nil: nothing to keep
	acks    []checkpoint.OperatorAck // by operator
	waiting int                      // parts being written
	dropped bool
	// As it was at the barrier: every operator had ended.
	finished bool
	mark     int64 // watermark at the barrier
	written  int64 // when the async phase began
	stats    checkpoint.SubtaskStats
}

// snapshot takes the sync phase, tail to head, and starts the async phase.
func (t *Task) snapshot(b checkpoint.Barrier) {
	began := t.cfg.Now()
	s := &snapshot{
		id:    b.ID,
		parts: make([]operator.Snapshot, len(t.cfg.Ops)),
		acks:  make([]checkpoint.OperatorAck, len(t.cfg.Ops)),
		mark:  t.gate.mark(), finished: t.finished,
		stats: t.measured(b.ID, began),
	}
	for i := len(t.cfg.Ops) - 1; i >= 0; i-- {
		op := t.cfg.Ops[i]
		t.doing.set(Syncing, i, t.cfg.Now())
		part, err := op.Op.Snapshot(b)
		if err != nil {
			for _, p := range s.parts {
				if p != nil {
					p.Release()
				}
			}
			reason, detail := declined(op.Name, err)
			t.observe("fail")
			t.apply(t.barriers.Fail(b.ID, reason, detail))
			return
		}
		s.parts[i] = part
	}
	s.written = t.cfg.Now()
	s.stats.Sync = s.written - began
	s.ctx, s.cancel = context.WithCancel(t.ctx)
	t.snapshots = append(t.snapshots, s)
	t.write(s)
}

// measured is what is known of a checkpoint when its sync phase begins.
func (t *Task) measured(id checkpoint.ID, now int64) checkpoint.SubtaskStats {
	begin := t.preparing.begin
	st := checkpoint.SubtaskStats{
		Subtask: t.cfg.ID, First: begin.First, Last: begin.Last,
		Alignment: begin.Last - begin.First, Prepare: now - t.preparing.since,
	}
	queued := t.queued(id)
	for i, in := range t.cfg.Inputs {
		c := checkpoint.ChannelStats{From: in.From, Arrived: begin.Arrived[i]}
		if queued != nil {
			c.Queued = queued[i]
		}
		st.Channels = append(st.Channels, c)
	}
	return st
}

// write starts the async phase.
func (t *Task) write(s *snapshot) {
	s.waiting = 1
	for i, part := range s.parts {
		if part == nil {
			continue
		}
		var packer *statefile.Packer
		if t.cfg.Packers != nil {
			packer = t.cfg.Packers.Packer(s.id).Subtask()
		}
		var err error
		work := func(context.Context) { s.acks[i], err = part.Write(s.ctx, packer) }
		then := func() {
			part.Release()
			t.wrote(s, i, err)
		}
		s.waiting++
		if t.opt.Inline {
			t.doing.set(Writing, i, t.cfg.Now())
			work(s.ctx)
			then()
			continue
		}
		t.writes++
		t.exec(t.cfg.Ops[i].Name, work, returned{then: then, write: true})
	}
	t.doing.set(Idle, 0, t.cfg.Now())
	t.partDone(s)
}

// wrote handles the end of one operator's async phase.
func (t *Task) wrote(s *snapshot, i int, err error) {
	if err != nil && !s.dropped && t.phase < closing {
		t.observe("fail")
		t.apply(t.barriers.Fail(s.id, checkpoint.AsyncFailed, fmt.Sprintf("operator %q: %v", t.cfg.Ops[i].Name, err)))
	}
	t.partDone(s)
}

// partDone acknowledges once everything is written.
func (t *Task) partDone(s *snapshot) {
	if s.waiting--; s.waiting > 0 {
		return
	}
	s.cancel()
	t.snapshots = slices.DeleteFunc(t.snapshots, func(o *snapshot) bool { return o == s })
	if s.dropped || t.phase >= closing {
		return
	}
	s.stats.Async = t.cfg.Now() - s.written
	ack := checkpoint.Ack{Subtask: t.cfg.ID, Epoch: t.cfg.Epoch, ID: s.id}
	for i, part := range s.parts {
		if part == nil {
			continue
		}
		a := s.acks[i]
		a.Finished = a.Finished || s.finished
		a.Watermark, a.Held = s.mark, s.mark
		ack.Operators = append(ack.Operators, a)
		for _, st := range a.States {
			s.stats.Bytes += st.Bytes
			s.stats.States = append(s.stats.States, checkpoint.StateStats{Operator: a.Operator, State: st.State, Entries: st.Entries, Bytes: st.Bytes})
		}
		for _, sp := range a.Splits {
			s.stats.Splits = append(s.stats.Splits, checkpoint.SplitStats{Operator: a.Operator, Split: sp.ID, N: sp.N})
		}
	}
	ack.Stats = s.stats
	t.cfg.Lead.Ack(ack)
}

// discard drops a snapshot that is being written: the writing is told to end,
// what comes of it is not acknowledged, its objects are left to collection.
func (t *Task) discard(id checkpoint.ID) {
	for _, s := range t.snapshots {
		if s.id == id {
			s.dropped = true
			s.cancel()
		}
	}
}
