package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
)

// Checkpoints can be pinned by a record in the log. The engine has no verb for
// it, so the world appends them, as a tool of the user would: it takes the job
// over while nobody runs it, and lets go of it at once.

// tool is who owns the log meanwhile.
const tool = "the user's tool"

// pin pins some checkpoint, or takes a pin back.
func (w *world) pin() {
	w.pins--
	ctx, store := context.Background(), w.disk.Open()
	if _, err := ckptlog.Read(ctx, store); errors.Is(err, ckptlog.ErrEmpty) {
		return
	}

	w.halfLinked = false // what it appends makes the name before it durable
	l, v, err := ckptlog.TakeOver(ctx, ckptlog.Config{
		Store: store, Nonce: w.nonce, Owner: tool, Wait: func(context.Context, int) error { return nil },
	}, ckptlog.Genesis{Job: jobName})
	if err != nil {
		w.fail("pin: %w", err)
		return
	}
	w.audit.look()
	kept := v.Retained()
	var r ckptlog.Record
	switch name := fmt.Sprint("pin ", w.rng.IntN(2)); {
	case w.audit.pins[name] != 0 && w.rng.IntN(3) == 0:
		r = ckptlog.Unpin{Name: name}
	case len(kept) > 0:
		r = ckptlog.Pin{Name: name, ID: kept[w.rng.IntN(len(kept))].ID}
	default:
		return
	}
	if err := l.Append(ctx, r); err != nil {
		w.fail("pin: %w", err)
	}
	w.audit.look()
}

// pinned takes in which checkpoints are pinned.
func (a *audit) pinned(r ckptlog.Record) {
	if a.pins == nil {
		a.pins = map[string]checkpoint.ID{}
	}
	switch r := r.(type) {
	case ckptlog.Pin:
		a.pins[r.Name] = r.ID
		if !a.rebuilding {
			a.w.result.Pins++
		}
	case ckptlog.Unpin:
		delete(a.pins, r.Name)
	case ckptlog.Floor:
		pins := map[string]checkpoint.ID{}
		for _, p := range r.State.Pins {
			pins[p.Name] = p.ID
		}
		if !a.rebuilding && !maps.Equal(pins, a.pins) {
			a.w.fail("a floor holds the pins %v, the log before it %v", pins, a.pins)
		}
		a.pins = pins
	case ckptlog.Dispose:
		for name, id := range a.pins {
			if slices.Contains(r.IDs, id) {
				a.w.fail("checkpoint %d is given up, but pinned by %s", id, name)
			}
		}
	}
}
