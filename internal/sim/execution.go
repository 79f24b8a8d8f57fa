package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

// options are those of process p.
func (w *world) options(p *process) cluster.Options {
	o := cluster.Options{
		Store: p.store,
		Lock:  func() (func(), error) { return w.bank.lock(p) },
		Mode:  w.Mode,
		Checkpoint: cluster.CheckpointOptions{
			Interval: w.interval, Timeout: w.timeout, MinPause: w.minPause, FailAfter: w.failAfter, Retain: w.retain,
			Inline: w.inline, AlignmentLimit: w.alignmentLimit, GiveUpAppend: w.giveUp,
		},
		Restart:         cluster.RestartPolicy{Delay: 5 * time.Millisecond, MaxDelay: 200 * time.Millisecond, Factor: 2, Reset: time.Second},
		Takeover:        p.takeover,
		ChannelCapacity: w.channel,
		TrimEvery:       w.trimEvery,
		OnEvent:         func(e cluster.Event) { w.event(p, e) },
		Env:             p,
		Workers:         &workers{Workers: cluster.LocalWorkers(p), p: p},
		Observe:         w.observe,
		Owner:           p.String(),
	}
	p.wanted.into(&o)
	return o
}

// event is what an execution tells its user.
func (w *world) event(p *process, e cluster.Event) {
	switch e := e.(type) {
	case cluster.Started:
		w.tracef("%v: attempt %v, restored %d", p, e.Epoch, e.Restored)
		p.epoch, p.completes, p.aborts, p.lostMail = e.Epoch, nil, nil, false
		p.consecutive, p.counted = 0, 0
		w.audit.look()
		w.checkStart(p, e)
		if w.bank.owner != p && !p.takeover {
			w.fail("%v runs beside a living owner", p)
		}
		w.ask(p)
	case cluster.Checkpointed:
		w.tracef("%v: checkpoint %d", p, e.Stats.ID)
		w.result.Checkpoints++
		p.completes = append(p.completes, e.Stats.ID)
		p.consecutive, p.counted = 0, 0
		w.ask(p)
	case cluster.CheckpointFailed:
		w.tracef("%v: checkpoint %d failed: %v", p, e.Stats.ID, e.Stats.Failure)
		w.result.Failed++
		if e.Stats.Failure.Phase > checkpoint.PhaseEnumerators {
			p.aborts = append(p.aborts, e.Stats.ID)
		}
		p.consecutive++
		if e.Stats.Failure.Reason.Counts() {
			p.counted++
		}
		if w.failAfter > 0 && p.counted > w.failAfter {
			w.fail("%v: the attempt goes on after %d checkpoints in a row that failed, allowed are %d", p, p.counted, w.failAfter-1)
		}
		w.ask(p)
	case cluster.Restarting:
		w.tracef("%v: restart %d: %v", p, e.Restart, e.Cause)
		w.result.Restarts++
		if strings.Contains(e.Cause.Error(), "consecutive checkpoint") && p.consecutive < w.failAfter {
			w.fail("%v: the attempt was failed after %d checkpoints that failed, allowed are %d: %w", p, p.consecutive, w.failAfter-1, e.Cause)
		}
		if unexpected(e.Cause) && !w.collected(p, e.Cause) {
			w.fail("%v: an attempt failed: %w", p, e.Cause)
		}
	}
}

// ask asks for a checkpoint at some time, as a user does.
func (w *world) ask(p *process) {
	if !w.happens(w.requests) {
		return
	}
	if w.rng.IntN(4) == 0 {
		p.request()
		return
	}
	p.later(p.request)
}

func (p *process) request() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits for the answer
	p.exec.Checkpoint(ctx)
}

var errLocked = cluster.ErrLocked

func isFenced(err error) bool { return errors.Is(err, ckptlog.ErrFenced) }

// unexpected says whether an error comes from nothing that was made to fail.
func unexpected(err error) bool {
	for _, made := range []error{
		errInjected, storage.ErrUnreachable, memstore.ErrNoReply, memstore.ErrDead, storage.ErrNotWritten,
		ckptlog.ErrFenced, ckptlog.ErrUndecided, ckptlog.ErrVoided, context.Canceled,
	} {
		if errors.Is(err, made) {
			return false
		}
	}
	text := fmt.Sprint(err)
	for _, made := range []string{"consecutive checkpoint fail", "was dropped"} {
		if strings.Contains(text, made) {
			return false
		}
	}
	return true
}
