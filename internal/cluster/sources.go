package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/task"
)

// discoverEvery is how often an enumerator that may find more is asked.
const discoverEvery = time.Second

// openSources makes the enumerators of an attempt, restores them, and decides
// which subtask reads which split.
func (x *Execution) openSources(ctx context.Context, a *attempt) error {
	for node, spec := range x.job.Specs {
		if spec.Enumerator == nil {
			continue
		}
		h := newSplitHost(spec.Meta.Name, spec.Meta.Parallelism, spec.Assign)
		a.hosts[node] = h
		var state []byte
		if a.restored != nil {
			state = a.restored.enumerators[node]
			known := a.withReservations(spec.Meta.Name, a.restored.splits[node])
			if err := h.restore(known); err != nil {
				return err
			}
		}
		e, err := spec.Enumerator(ctx, x.instance(spec.Meta, -1, a.epoch, a.lineage))
		if err != nil {
			return fmt.Errorf("source %q: make enumerator: %w", h.source, err)
		}
		h.enum = e
		if state != nil {
			if err := e.Restore(state); err != nil {
				// Its next try would be given the same bytes.
				return &permanentError{fmt.Errorf("source %q: the checkpoint holds the position of another kind of source, or it is damaged: restore enumerator: %w", h.source, err)}
			}
		}
		found, more, err := h.discover(ctx)
		if err != nil {
			return err
		}
		if err := a.found(h, found, more); err != nil {
			return err
		}
	}
	return nil
}

// withReservations moves splits behind what an AtMostOnce job may have emitted
// of them, whatever checkpoint is restored, and whatever mode it runs in now.
func (a *attempt) withReservations(source string, splits []checkpoint.Split) []checkpoint.Split {
	for i, s := range splits {
		if r, ok := a.view.Reservation(source, s.ID); ok && r.N > s.N {
			splits[i].N, splits[i].State = r.N, r.State
		}
	}
	return splits
}

// found takes what an enumerator found.
func (a *attempt) found(h *splitHost, splits []checkpoint.Split, more bool) error {
	h.more = more
	return h.add(a.withReservations(h.source, splits))
}

// handOverSplits sends every subtask its splits, unless they are held.
func (x *Execution) handOverSplits(a *attempt) {
	for node, h := range a.hosts {
		if h == nil {
			continue
		}
		for i := range h.n {
			x.handOver(a, node, i)
		}
		if h.more {
			x.discoverLater(a, node)
		}
	}
}

func (x *Execution) handOver(a *attempt, node, subtask int) {
	h := a.hosts[node]
	if h.holds[subtask] > 0 {
		return
	}
	id := checkpoint.SubtaskID{Vertex: x.job.Plan.Vertices[x.job.Plan.VertexOf[node]].Name, Index: subtask}
	if splits := h.waiting[subtask]; len(splits) > 0 {
		h.waiting[subtask] = nil
		x.deliver(a, id, task.AddSplits{Splits: splits})
	}
	if !h.more && !h.closed[subtask] {
		h.closed[subtask] = true
		x.deliver(a, id, task.NoMoreSplits{})
	}
}

// discoverLater asks an enumerator again for as long as there may be more.
func (x *Execution) discoverLater(a *attempt, node int) {
	x.env.After(discoverEvery, func() {
		x.in.post(func() {
			if x.att != a || a.ending {
				return
			}
			h := a.hosts[node]
			x.discoverNow(a, node, h)
		})
	})
}

func (x *Execution) discoverNow(a *attempt, node int, h *splitHost) {
	a.enum.do(func(done func()) {
		var splits []checkpoint.Split
		var more bool
		x.inAttempt(a, "find splits", func(ctx context.Context) (err error) {
			splits, more, err = h.discover(ctx)
			return err
		}, func(err error) {
			done()
			if a.ending {
				return
			}
			if err == nil {
				err = a.found(h, splits, more)
			}
			if err != nil {
				x.endAttempt(a, err)
				return
			}
			for i := range h.n {
				x.handOver(a, node, i)
			}
			if h.more {
				x.discoverLater(a, node)
			}
		})
	})
}

// enumerators is the enumerators' part of a checkpoint, by node.
type enumerators struct {
	state map[int][]byte
	held  map[int][]checkpoint.Split // returned by the enumerator, in no reader's part
}

// snapshotEnumerators takes the enumerators' part of a checkpoint. From here on
// nothing is handed over to a reader before it has acked or the id is given
// up: what is found meanwhile is behind the snapshot of the enumerator, and
// must be behind the barrier of the reader.
func (x *Execution) snapshotEnumerators(a *attempt, act checkpoint.SnapshotEnumerators) {
	for _, h := range a.hosts {
		if h == nil {
			continue
		}
		for i := range h.holds {
			h.holds[i]++
		}
	}
	state := enumerators{state: map[int][]byte{}, held: map[int][]checkpoint.Split{}}
	a.enum.do(func(done func()) {
		x.inAttempt(a, "snapshot enumerators", func(context.Context) error {
			for node, spec := range x.job.Specs {
				h := a.hosts[node]
				if h == nil {
					continue
				}
				b, err := h.enum.Snapshot()
				if err != nil {
					return fmt.Errorf("source %q: snapshot enumerator: %w", spec.Meta.Name, err)
				}
				state.state[node] = append([]byte{}, b...)
			}
			return nil
		}, func(err error) {
			for node, h := range a.hosts {
				if h != nil {
					state.held[node] = h.held()
				}
			}
			done()
			if err != nil {
				x.tellFailure(a, act.ID, act.Kind == checkpoint.Final, checkpoint.EnumeratorsFailed{ID: act.ID, Detail: err.Error()})
				return
			}
			a.enumAt[act.ID] = state
			x.tell(a, checkpoint.EnumeratorsSnapshotted{ID: act.ID})
		})
	})
}

func (x *Execution) releaseAssignments(a *attempt, r checkpoint.ReleaseAssignments) {
	for node, h := range a.hosts {
		if h != nil && x.job.Plan.Vertices[x.job.Plan.VertexOf[node]].Name == r.Subtask.Vertex && h.holds[r.Subtask.Index] > 0 {
			h.holds[r.Subtask.Index]--
			x.handOver(a, node, r.Subtask.Index)
		}
	}
}
