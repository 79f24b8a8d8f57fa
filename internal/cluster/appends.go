package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/storage"
)

// appendRecord appends r to the log, after everything that was asked of the log
// before. then is called in the loop when the outcome is decided: nil (it is in
// the log), or an error that says that it is certainly not. While it is
// undecided nothing is called, and an end of the generation meanwhile is the
// end of the execution: nothing may be concluded, so nothing is rolled back.
func (x *Execution) appendRecord(r ckptlog.Record, then func(error)) {
	name, a := "append "+r.Kind().String(), x.att
	x.logCalls.do(func(done func()) {
		if x.finished {
			return
		}
		x.async(name, func(ctx context.Context) error {
			return x.decide(ctx, a, r)
		}, func(err error) {
			if x.finished {
				return
			}
			if err != nil && !notInLog(err) {
				x.fatal(fmt.Errorf("%s to the checkpoint log: %w", name, err))
				return
			}
			x.view = x.chk.View()
			x.provedOwnership()
			x.sinceFloor++
			then(err)
			x.trim()
			done()
			x.tryClose(x.att)
		})
	})
}

// notInLog says whether a record was certainly not written, and the log goes on.
func notInLog(err error) bool {
	return errors.Is(err, ckptlog.ErrVoided) || errors.Is(err, ckptlog.ErrRefused) || errors.Is(err, storage.ErrNotWritten)
}

// decide appends r and stays with it until the outcome is known. Storage that
// does not answer is no failure of the checkpoint: it is reported, and no other
// is triggered meanwhile. A Checkpoint is given up after a while, by winning
// its slot.
func (x *Execution) decide(ctx context.Context, a *attempt, r ckptlog.Record) error {
	limit, cancel := context.WithCancel(ctx)
	defer cancel()
	c, giveUp := r.(ckptlog.Checkpoint)
	if giveUp {
		stop := x.env.After(x.opt.Checkpoint.GiveUpAppend, cancel)
		defer stop()
	}
	err := x.chk.Append(limit, r)
	for errors.Is(err, ckptlog.ErrUndecided) && ctx.Err() == nil {
		x.warn(ctx, "it is undecided whether a record is in the log; trying again", err, "record", r.Kind().String())
		if giveUp {
			x.in.post(func() { x.tell(a, checkpoint.Undecided{ID: c.ID}) })
			err = x.chk.GiveUp(ctx)
		} else {
			err = x.chk.Retry(ctx)
		}
	}
	return err
}

// trim collects the log once it has grown.
func (x *Execution) trim() {
	if x.trimming || x.sinceFloor < x.opt.TrimEvery {
		return
	}
	x.trimming = true
	x.logCall("trim", (*ckptlog.Log).Trim, func(err error) {
		x.trimming, x.sinceFloor = false, 0
		if err != nil {
			x.warn(x.ctx, "collecting the checkpoint log failed; it is tried again later", err)
		}
	})
}

// logCall calls the log for something other than an append. What says that the
// log is not ours any more ends the execution.
func (x *Execution) logCall(name string, call func(*ckptlog.Log, context.Context) error, then func(error)) {
	x.logCalls.do(func(done func()) {
		if x.finished {
			return
		}
		x.async(name+" log", func(ctx context.Context) error { return call(x.chk, ctx) }, func(err error) {
			if x.finished {
				return
			}
			if err != nil && (permanent(err) || errors.Is(err, ckptlog.ErrUndecided)) {
				x.fatal(fmt.Errorf("%s the checkpoint log: %w", name, err))
				return
			}
			x.view = x.chk.View()
			if err == nil {
				x.provedOwnership()
			}
			then(err)
			done()
			x.tryClose(x.att)
		})
	})
}

// ownershipPeriod is how old the last proof of ownership may get. Appends are
// proofs; an idle leader looks at the log.
const ownershipPeriod = 2 * time.Second

func (x *Execution) provedOwnership() { x.proved = x.env.Now() }

// watchOwnership looks at the log when nothing has proved for a while that the
// job is still ours: a leader whose checkpoints all fail, or are far between,
// must notice that it was taken over.
func (x *Execution) watchOwnership() {
	x.env.After(ownershipPeriod, func() {
		x.in.post(func() {
			switch {
			case x.finished:
			case x.logCalls.busy || x.env.Now()-x.proved < int64(ownershipPeriod):
				x.watchOwnership()
			default:
				x.logCall("prove ownership of", (*ckptlog.Log).Owned, func(err error) {
					if err != nil {
						x.warn(x.ctx, "the checkpoint log cannot be read", err)
					}
					x.watchOwnership()
				})
			}
		})
	})
}
