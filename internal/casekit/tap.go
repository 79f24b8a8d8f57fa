package casekit

import (
	"context"
	"fmt"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
)

// Tap is called before the phases of an operator's snapshots; an error is the
// phase's. It must be safe for several subtasks at once.
type Tap struct {
	Sync  func(i connector.Instance, b checkpoint.Barrier) error
	Async func(ctx context.Context, i connector.Instance, id checkpoint.ID) error
}

// Put puts a tap on every subtask of an operator.
func (t Tap) Put(job *cluster.Job, name string) {
	for i := range job.Specs {
		if job.Specs[i].Meta.Name != name {
			continue
		}
		made := job.Specs[i].Make
		job.Specs[i].Make = func(outs [][]any) operator.Made {
			m := made(outs)
			m.Op = t.wrap(m.Op)
			return m
		}
		return
	}
	panic(fmt.Sprintf("casekit: there is no operator %q to tap", name))
}

// tapped has the tap's methods; what is tapped keeps its optional ones.
type tapped struct {
	operator.Operator
	tap Tap
	i   connector.Instance
}

type (
	tappedTimers struct {
		*tapped
		operator.Timers
	}
	tappedSource struct {
		*tapped
		polls
	}
	tappedSink struct {
		*tapped
		operator.Preparer
		operator.Throttle
	}
	polls interface {
		AddSplits(s []checkpoint.Split) error
		NoMoreSplits()
		Poll(now int64, max int) (operator.PollResult, error)
		Available() <-chan struct{}
	}
)

func (t Tap) wrap(op operator.Operator) operator.Operator {
	w := &tapped{Operator: op, tap: t}
	switch o := op.(type) {
	case operator.Source:
		return &tappedSource{w, o}
	case operator.Timers:
		return &tappedTimers{w, o}
	case interface {
		operator.Preparer
		operator.Throttle
	}:
		return &tappedSink{w, o, o}
	}
	return w
}

func (t *tapped) Open(rt *operator.Runtime) error {
	t.i = rt.Instance
	return t.Operator.Open(rt)
}

func (t *tapped) Snapshot(b checkpoint.Barrier) (operator.Snapshot, error) {
	if t.tap.Sync != nil {
		if err := t.tap.Sync(t.i, b); err != nil {
			return nil, err
		}
	}
	s, err := t.Operator.Snapshot(b)
	if s == nil || err != nil || t.tap.Async == nil {
		return s, err
	}
	return &tappedSnapshot{s, t, b.ID}, nil
}

type tappedSnapshot struct {
	operator.Snapshot
	t  *tapped
	id checkpoint.ID
}

func (s *tappedSnapshot) Write(ctx context.Context, p *statefile.Packer) (checkpoint.OperatorAck, error) {
	if err := s.t.tap.Async(ctx, s.t.i, s.id); err != nil {
		return checkpoint.OperatorAck{}, err
	}
	return s.Snapshot.Write(ctx, p)
}
