package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/storage"
)

// sinkCommittables are the committables of a checkpoint, by node of the sink.
type sinkCommittables map[int][]connector.Committable

func (c sinkCommittables) any() bool {
	for _, cs := range c {
		if len(cs) > 0 {
			return true
		}
	}
	return false
}

// committablesOf collects, from the acks of a checkpoint, every committable
// that is not yet confirmed, whatever id it was prepared for.
func (x *Execution) committablesOf(acks []checkpoint.Ack) sinkCommittables {
	out := sinkCommittables{}
	for _, ack := range acks {
		for _, op := range ack.Operators {
			if len(op.Committables) == 0 {
				continue
			}
			node := x.nodeOf(op.Operator)
			for _, c := range op.Committables {
				out[node] = append(out[node], connector.Committable{ID: c.ID, Data: c.Data})
			}
		}
	}
	return out
}

// commitSinks commits everything prepared up to id: it is in the log, so there
// is no way back, and whatever fails is tried again until it succeeds, the
// attempt ends (the next one begins with it), or a sink says that it is lost.
func (x *Execution) commitSinks(a *attempt, id checkpoint.ID) {
	m := a.manifests[id]
	for older := range a.manifests {
		if older < id {
			delete(a.manifests, older)
		}
	}
	if m == nil || !m.committables.any() {
		x.tell(a, checkpoint.SinksCommitted{ID: id})
		return
	}
	a.committing.do(func(done func()) {
		x.inAttempt(a, "commit sinks", func(ctx context.Context) error {
			return x.commit(ctx, m.committables, func(err error) {
				x.warn(ctx, "sinks cannot commit yet; it is tried again", err, "checkpoint", id)
				x.in.post(func() { x.tell(a, checkpoint.SinksFailed{ID: id, Detail: err.Error()}) })
			})
		}, func(err error) {
			done()
			switch {
			case err == nil:
				x.tell(a, checkpoint.SinksCommitted{ID: id})
			case permanent(err):
				x.fatal(err)
			case !a.ending:
				x.endAttempt(a, err)
			}
		})
	})
}

// appendCommitted appends that sinks have committed. A store that refuses it for
// a while, full or not reachable, is no reason to end the job: what the record
// says stays true, and it is tried again for as long as the attempt lives. The
// next one begins with it.
func (x *Execution) appendCommitted(a *attempt, r ckptlog.Committed, then func()) {
	x.appendRecord(r, func(err error) {
		switch {
		case err == nil:
			then()
		case !errors.Is(err, storage.ErrNotWritten):
			x.fatal(fmt.Errorf("append committed %d: %w", r.ID, err))
		default:
			x.warn(a.ctx, "that sinks have committed cannot be recorded yet; trying again", err, "checkpoint", r.ID)
			x.env.After(time.Second, func() {
				x.in.post(func() {
					if x.att == a && !a.ending && !x.finished {
						x.appendCommitted(a, r, then)
					}
				})
			})
		}
	})
}

// commit commits cs, trying again for as long as ctx lives.
func (x *Execution) commit(ctx context.Context, cs sinkCommittables, failed func(error)) error {
	for node, spec := range x.job.Specs {
		if len(cs[node]) == 0 {
			continue
		}
		if spec.Committer == nil {
			return fmt.Errorf("sink %q: the checkpoint names %d committables, but the sink does not commit", spec.Meta.Name, len(cs[node]))
		}
		err := x.retry(ctx, func() error { return spec.Committer.Commit(ctx, cs[node]) }, func(err error) {
			failed(fmt.Errorf("sink %q: commit: %w", spec.Meta.Name, err))
		})
		if err != nil {
			return fmt.Errorf("sink %q: commit %d committables: %w", spec.Meta.Name, len(cs[node]), err)
		}
	}
	return nil
}

// retry calls f until it succeeds, says that it never will, or ctx ends.
func (x *Execution) retry(ctx context.Context, f func() error, failed func(error)) error {
	for delay := 10 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		err := f()
		if err == nil || permanent(err) || errors.Is(err, connector.ErrFenced) {
			return err
		}
		if ctx.Err() != nil {
			return ended(ctx, err)
		}
		failed(err)
		if x.env.Sleep(ctx, delay) != nil {
			return ended(ctx, err)
		}
	}
}

// ended says that it was the end of ctx that ended the tries, the last of which
// failed with err.
func ended(ctx context.Context, err error) error {
	if cancelled(ctx, err) {
		return err
	}
	return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
}

// recoverSinks runs before any writer is made: what the restored checkpoint
// names is committed, everything else that older attempts left is dropped, and
// older generations are fenced off.
func (x *Execution) recoverSinks(ctx context.Context, e checkpoint.Epoch, lineage uint64, pending sinkCommittables) error {
	for node, spec := range x.job.Specs {
		i := x.instance(spec.Meta, -1, e, lineage)
		report := func(err error) {
			x.warn(ctx, "sink cannot recover yet; it is tried again", err, "sink", spec.Meta.Name)
		}
		if spec.Fencer != nil {
			if err := x.retry(ctx, func() error { return spec.Fencer.Fence(ctx, i) }, report); err != nil {
				return fmt.Errorf("sink %q: fence older generations: %w", spec.Meta.Name, err)
			}
		}
		if spec.Committer == nil {
			if n := len(pending[node]); n > 0 {
				return fmt.Errorf("sink %q: the checkpoint names %d committables, but the sink does not commit", spec.Meta.Name, n)
			}
			continue
		}
		if err := x.retry(ctx, func() error { return spec.Committer.Recover(ctx, i, pending[node]) }, report); err != nil {
			return fmt.Errorf("sink %q: recover with %d committables: %w", spec.Meta.Name, len(pending[node]), err)
		}
	}
	return nil
}

// instance describes an operator's subtask to a connector; -1 is the whole job.
func (x *Execution) instance(m checkpoint.OperatorMeta, subtask int, e checkpoint.Epoch, lineage uint64) connector.Instance {
	return connector.Instance{
		Job: x.job.Name, Operator: m.Name, Subtask: subtask, Parallelism: m.Parallelism,
		Lineage: lineage, Generation: e.Generation, Attempt: e.Attempt,
		Log: x.log.With("operator", m.Name, "subtask", subtask),
	}
}

func (x *Execution) nodeOf(operator string) int {
	for node, s := range x.job.Specs {
		if s.Meta.Name == operator {
			return node
		}
	}
	panic(fmt.Sprintf("cluster: operator %q is not in the job", operator))
}

func isLost(err error) bool {
	return errors.Is(err, connector.ErrLost) || errors.Is(err, connector.ErrFenced)
}
