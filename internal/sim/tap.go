package sim

import (
	"context"
	"slices"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
)

// tap stands between a subtask and one of its operators: it notes what the
// operator is told of checkpoints, and makes snapshots slow or fail.
type tap struct {
	w  *world
	p  *process
	op operator.Operator
	told
}

// told is what one operator of one subtask of one attempt was told.
type told struct {
	p                          *process
	instance                   string
	subtask                    int
	epoch                      checkpoint.Epoch
	complete, aborted, covered []checkpoint.ID
}

func (t *tap) open(rt *operator.Runtime) error {
	i := rt.Instance
	t.told.p, t.instance, t.subtask = t.p, i.Operator, i.Subtask
	t.epoch = checkpoint.Epoch{Generation: i.Generation, Attempt: i.Attempt}
	t.w.told = append(t.w.told, &t.told)
	return t.op.Open(rt)
}

func (t *tap) snapshot(b checkpoint.Barrier) (operator.Snapshot, error) {
	if s, aborted := t.p.givenUp.begins(t.instance, t.subtask, b.ID); aborted {
		t.w.fail("%v: %v begins checkpoint %d although it was told that it is aborted", t.p, s, b.ID)
	}
	if slices.Contains(t.aborted, b.ID) || slices.Contains(t.complete, b.ID) {
		t.w.fail("%v: an operator of %s is asked for a snapshot of checkpoint %d, of whose end it was told", t.p, t.instance, b.ID)
	}
	if t.w.happens(t.w.syncFails) {
		return nil, errInjected
	}
	s, err := t.op.Snapshot(b)
	if s == nil || err != nil {
		return nil, err
	}
	return &tappedSnapshot{s, t}, nil
}

// note keeps a list of ids, in which none may come twice; and the error that an
// operator answers with, which must not keep the others from being told.
func (t *tap) note(what string, list *[]checkpoint.ID, id checkpoint.ID, tell func(checkpoint.ID) error) error {
	if slices.Contains(*list, id) {
		t.w.fail("%v: an operator of %s is told twice that checkpoint %d is %s", t.p, t.instance, id, what)
	}
	*list = append(*list, id)
	if slices.Contains(t.complete, id) && slices.Contains(t.aborted, id) {
		t.w.fail("%v: an operator of %s is told that checkpoint %d is complete and that it is aborted", t.p, t.instance, id)
	}
	if err := tell(id); err != nil {
		return err
	}
	if t.w.happens(t.w.noteFails) {
		return errInjected
	}
	return nil
}

func (t *tap) tellComplete(id checkpoint.ID) error {
	return t.note("complete", &t.complete, id, t.op.Complete)
}
func (t *tap) tellAbort(id checkpoint.ID) error { return t.note("aborted", &t.aborted, id, t.op.Abort) }
func (t *tap) tellCommitted(id checkpoint.ID) error {
	return t.note("committed", &t.covered, id, t.op.Committed)
}

type tappedSnapshot struct {
	operator.Snapshot
	t *tap
}

func (s *tappedSnapshot) Write(ctx context.Context, p *statefile.Packer) (checkpoint.OperatorAck, error) {
	w := s.t.w
	if w.happens(w.slowWrite) {
		s.t.p.Sleep(context.WithoutCancel(ctx), time.Duration(w.rng.Int64N(int64(w.writeTime))))
		if w.asyncFails != 0 && w.rng.IntN(3) == 0 {
			return checkpoint.OperatorAck{}, errInjected
		}
	}
	if w.happens(w.asyncFails) {
		return checkpoint.OperatorAck{}, errInjected
	}
	return s.Snapshot.Write(ctx, p)
}

// The three shapes of operators: each hands to its tap what the tap watches,
// and has the optional methods of what it wraps.
type (
	tappedSource struct {
		operator.Source
		t *tap
	}
	tappedSink struct {
		sinkOperator
		t *tap
	}
	timedTap struct {
		*keyedTap
		operator.Timers
	}
	keyedTap struct {
		operator.Operator
		t *tap
	}
	sinkOperator interface {
		operator.Operator
		operator.Preparer
		operator.Throttle
	}
)

func (o *keyedTap) Open(rt *operator.Runtime) error { return o.t.open(rt) }
func (o *keyedTap) Snapshot(b checkpoint.Barrier) (operator.Snapshot, error) {
	return o.t.snapshot(b)
}
func (o *keyedTap) Complete(id checkpoint.ID) error  { return o.t.tellComplete(id) }
func (o *keyedTap) Abort(id checkpoint.ID) error     { return o.t.tellAbort(id) }
func (o *keyedTap) Committed(id checkpoint.ID) error { return o.t.tellCommitted(id) }

func (o *tappedSource) Open(rt *operator.Runtime) error { return o.t.open(rt) }
func (o *tappedSource) Snapshot(b checkpoint.Barrier) (operator.Snapshot, error) {
	return o.t.snapshot(b)
}
func (o *tappedSource) Complete(id checkpoint.ID) error  { return o.t.tellComplete(id) }
func (o *tappedSource) Abort(id checkpoint.ID) error     { return o.t.tellAbort(id) }
func (o *tappedSource) Committed(id checkpoint.ID) error { return o.t.tellCommitted(id) }

func (o *tappedSink) Open(rt *operator.Runtime) error { return o.t.open(rt) }
func (o *tappedSink) Snapshot(b checkpoint.Barrier) (operator.Snapshot, error) {
	return o.t.snapshot(b)
}
func (o *tappedSink) Complete(id checkpoint.ID) error  { return o.t.tellComplete(id) }
func (o *tappedSink) Abort(id checkpoint.ID) error     { return o.t.tellAbort(id) }
func (o *tappedSink) Committed(id checkpoint.ID) error { return o.t.tellCommitted(id) }

// tap puts a tap in front of an operator that was made.
func (w *world) tap(p *process, m operator.Made) operator.Made {
	t := &tap{w: w, p: p, op: m.Op}
	switch op := m.Op.(type) {
	case operator.Source:
		m.Op = &tappedSource{op, t}
	case sinkOperator:
		m.Op = &tappedSink{op, t}
	case operator.Timers:
		m.Op = timedTap{&keyedTap{m.Op, t}, op}
	default:
		m.Op = &keyedTap{op, t}
	}
	return m
}

// checkTold runs when an attempt ended because the job was done: every operator
// of it has heard of every checkpoint of the attempt.
func (w *world) checkTold(p *process) {
	for _, t := range w.told {
		if t.p != p || t.epoch != p.epoch {
			continue
		}
		for _, id := range t.complete {
			if !slices.Contains(p.completes, id) {
				w.fail("%v: an operator of %s was told that checkpoint %d is complete, which is not of its attempt", p, t.instance, id)
			}
		}
		for _, id := range t.aborted {
			if !slices.Contains(p.aborts, id) {
				w.fail("%v: an operator of %s was told that checkpoint %d is aborted, which is not of its attempt", p, t.instance, id)
			}
		}
		for _, id := range p.completes {
			if !slices.Contains(t.complete, id) && !p.lostMail {
				w.fail("%v: an operator of %s was not told that checkpoint %d is complete", p, t.instance, id)
			}
		}
		for _, id := range p.aborts {
			if !slices.Contains(t.aborted, id) {
				w.fail("%v: an operator of %s was not told that checkpoint %d is aborted", p, t.instance, id)
			}
		}
	}
}
