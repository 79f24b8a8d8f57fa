package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/storage"
)

// open takes the log over and begins the first attempt. Nothing is read that is
// acted on before the Takeover stands in the log.
func (x *Execution) open() {
	x.opening = true
	x.async("open", func(ctx context.Context) error {
		if err := storage.Probe(ctx, x.opt.Store); err != nil {
			return err
		}
		if err := x.lock(); err != nil {
			return err
		}
		nonce := x.env.Nonce()
		var seed uint64
		for _, b := range nonce[:8] {
			seed = seed<<8 | uint64(b)
		}
		chk, view, err := ckptlog.TakeOver(ctx, ckptlog.Config{
			Store: x.opt.Store,
			Nonce: x.env.Nonce,
			Wait: func(ctx context.Context, attempt int) error {
				return x.env.Sleep(ctx, min(10*time.Millisecond<<min(attempt, 8), time.Second))
			},
			Owner: x.opt.Owner,
		}, ckptlog.Genesis{Job: x.job.Name, JobID: nonce, HashID: keyhash.ID, HashSeed: seed})
		if err != nil {
			return fmt.Errorf("take over %s: %w", x.opt.Store, err)
		}
		x.chk, x.view = chk, view
		if view.HashID != keyhash.ID {
			return fmt.Errorf("%s: keys were hashed with function %d, this program has %d", x.opt.Store, view.HashID, keyhash.ID)
		}
		return x.chooseBranch(ctx)
	}, func(err error) {
		x.opening = false
		switch {
		case x.finished:
			return
		case x.stopping && (err == nil || cancelled(x.ctx, err)):
			x.finish(nil)
			return
		case err != nil: // also in a job that is being stopped: the next start meets it again
			x.finish(err)
			return
		}
		x.provedOwnership()
		x.watchOwnership()
		x.watchHealth()
		x.metrics.restored(x.env.Now())
		x.begin()
	})
}

// lock keeps a second start out. A takeover goes on without the lock of an
// owner that lives: the log fences that one.
func (x *Execution) lock() error {
	if x.opt.Lock == nil {
		return nil
	}
	release, err := x.opt.Lock()
	switch {
	case err == nil:
		x.release = release
	case x.opt.Takeover:
		x.log.Warn("taking the job over from an owner that lives", "owner", err)
	default:
		return fmt.Errorf("%w: %w (take it over with -takeover)", ErrLocked, err)
	}
	return nil
}

// chooseBranch makes the branch of history that the user asked for the current
// one: the newest checkpoint by itself, an older one, or none.
func (x *Execution) chooseBranch(ctx context.Context) error {
	latest, ok := x.view.Latest()
	switch {
	case x.opt.Fresh && x.opt.From != 0:
		return errors.New("a fresh start and a start from a checkpoint exclude each other")
	case x.opt.Fresh:
		return x.startFresh(ctx, latest, ok)
	case x.opt.From == 0 || ok && latest.ID == x.opt.From:
		return nil
	}
	from, there := x.view.ByID(x.opt.From)
	if !there {
		return fmt.Errorf("%s: there is no checkpoint %d to start from (kept: %v)", x.opt.Store, x.opt.From, ids(x.view.Retained()))
	}
	if !x.opt.AcceptRepeats && (x.view.CommittedAbove(from.ID) || len(uncommittedAbove(x.view, from.ID)) > 0) {
		return fmt.Errorf("%s: sinks have committed output behind checkpoint %d (up to %d): starting from it repeats that; -accept-repeats does it all the same",
			x.opt.Store, from.ID, max(x.view.LastCommitted, latest.ID))
	}
	if !x.opt.AcceptRepeats && x.opt.Mode == checkpoint.AtMostOnce && x.view.AcrossFresh(from) {
		return fmt.Errorf("%s: the job was started fresh since checkpoint %d, and does not know any more what it had emitted behind it: starting from it may repeat that; -accept-repeats does it all the same",
			x.opt.Store, from.ID)
	}
	if err := x.settleBranch(ctx, latest, ok); err != nil {
		return err
	}
	return x.branch(ctx, ckptlog.Restore{From: from.ID, Lineage: from.Lineage})
}

// startFresh begins a lineage without state. What the last one has decided is
// committed first; then every sink says what becomes of its old output.
func (x *Execution) startFresh(ctx context.Context, latest ckptlog.Retained, ok bool) error {
	if err := x.settleBranch(ctx, latest, ok); err != nil {
		return err
	}
	for _, spec := range x.job.Specs {
		if spec.Meta.Kind != "sink" {
			continue
		}
		what := "what was committed stays where it is"
		if spec.Renewer != nil {
			var err error
			i := x.instance(spec.Meta, -1, checkpoint.Epoch{Generation: x.chk.Generation()}, x.view.Lineage)
			if what, err = spec.Renewer.Renew(ctx, i); err != nil {
				return fmt.Errorf("fresh start: sink %q: set old output aside: %w", spec.Meta.Name, err)
			}
		}
		x.log.Info("fresh start", "sink", spec.Meta.Name, "old_output", what)
		x.in.post(func() { x.emit(Fresh{Sink: spec.Meta.Name, Output: what}) })
	}
	if !ok && len(x.view.Reservations) == 0 {
		return nil // there is nothing to leave
	}
	return x.branch(ctx, ckptlog.Restore{})
}

// settleBranch commits what the newest checkpoint of the branch that is left
// names: it is in the log, so it is decided, and nobody will come back to it.
func (x *Execution) settleBranch(ctx context.Context, latest ckptlog.Retained, ok bool) error {
	if !ok || latest.Committed || !latest.Committables {
		return nil
	}
	r, err := x.readCheckpoint(ctx, latest)
	if err != nil {
		return err
	}
	e := checkpoint.Epoch{Generation: x.chk.Generation()}
	if err := x.recoverSinks(ctx, e, latest.Lineage, r.committables); err != nil {
		return err
	}
	return x.appendNow(ctx, ckptlog.Committed{ID: latest.ID, Lineage: latest.Lineage})
}

func (x *Execution) branch(ctx context.Context, r ckptlog.Restore) error {
	if err := x.appendNow(ctx, r); err != nil {
		return err
	}
	return nil
}

// appendNow appends while nothing else runs yet.
func (x *Execution) appendNow(ctx context.Context, r ckptlog.Record) error {
	if err := x.decide(ctx, nil, r); err != nil {
		return fmt.Errorf("append %v to the checkpoint log: %w", r.Kind(), err)
	}
	x.view = x.chk.View()
	return nil
}

func uncommittedAbove(v ckptlog.View, id checkpoint.ID) (above []ckptlog.Retained) {
	for _, c := range v.Uncommitted() {
		if c.ID > id {
			above = append(above, c)
		}
	}
	return above
}

func ids(cs []ckptlog.Retained) []checkpoint.ID {
	out := make([]checkpoint.ID, len(cs))
	for i, c := range cs {
		out[i] = c.ID
	}
	return out
}
