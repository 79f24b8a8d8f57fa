package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// publishedManifest is a manifest that is durable, and what follows from it
// once the log names it.
type publishedManifest struct {
	record       ckptlog.Manifest
	objects      manifestObjects
	committables sinkCommittables
	records      map[string]int64
	failures     int // of x.failed that it keeps
}

// publish writes the manifest of a checkpoint whose acks are all in. It is
// nobody's before the Checkpoint record names it, so a crash here leaves only
// objects that are collected.
func (x *Execution) publish(a *attempt, p checkpoint.Publish) {
	enum := a.enumAt[p.ID]
	failed := slices.Clone(x.failed)
	m := &publishedManifest{failures: len(failed), committables: x.committablesOf(p.Acks)}
	// Made here and not off the loop, where a record that is appended meanwhile
	// replaces the view.
	header := checkpoint.Header{
		Job: x.job.Name, ID: p.ID, Parent: p.Parent, Lineage: a.lineage, Epoch: a.epoch, Kind: p.Kind, Mode: x.opt.Mode,
		HashID: x.view.HashID, HashSeed: x.view.HashSeed, Triggered: p.Stats.Triggered, Finished: p.Stats.LastAck,
	}
	x.inAttempt(a, "publish manifest", func(ctx context.Context) error {
		manifest, err := x.buildManifest(ctx, a, p, header, enum, failed)
		if err != nil {
			return err
		}
		b, err := manifest.Encode()
		if err != nil {
			return fmt.Errorf("encode manifest: %w", err)
		}
		n := x.env.Nonce()
		name := checkpoint.ManifestName(checkpoint.Origin{Lineage: a.lineage, Epoch: a.epoch, ID: p.ID}, n[:8])
		m.record = ckptlog.Manifest{Name: name, Size: int64(len(b)), CRC: crc32c(b)}
		m.objects, m.records = objectsOf(name, manifest), recordsOf(manifest)
		err = x.opt.Store.Create(ctx, name, b)
		if errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("write manifest: the name %s was used before", name)
		}
		if err != nil {
			return fmt.Errorf("write manifest %s: %w", name, err)
		}
		return nil
	}, func(err error) {
		if err == nil {
			a.manifests[p.ID] = m
		}
		x.tellFailure(a, p.ID, err != nil && p.Kind == checkpoint.Final, checkpoint.Published{ID: p.ID, Err: err})
	})
}

// buildManifest packs what is a table and puts the manifest together.
func (x *Execution) buildManifest(ctx context.Context, a *attempt, p checkpoint.Publish, header checkpoint.Header, enum enumerators, failed []checkpoint.Stats) (*checkpoint.Manifest, error) {
	packer := statefile.NewPacker(ctx, x.opt.Store, statefile.Options{
		Name: func() string { return x.objectName(a, p.ID) }, ID: x.env.Nonce,
	})
	defer packer.Abort()
	plan := x.planned(p.Acks)
	gathered, err := checkpoint.Gather(plan, p.Acks)
	if err != nil {
		return nil, err
	}
	t := newTables(packer)
	packed := checkpoint.Packed{Operators: map[string]checkpoint.PackedOperator{}}
	for _, g := range gathered {
		node := x.nodeOf(g.Operator)
		g.Splits = append(g.Splits, enum.held[node]...)
		op, err := t.operator(ctx, g)
		if err == nil {
			if b, ok := enum.state[node]; ok {
				op.Enumerator, err = t.write(ctx, []row{{"enumerator", b}})
			}
		}
		if err != nil {
			return nil, fmt.Errorf("operator %q: %w", g.Operator, err)
		}
		packed.Operators[g.Operator] = op
	}
	stats := []row{{fmt.Sprint(p.ID), p.Stats}}
	for _, f := range failed {
		stats = append(stats, row{fmt.Sprint(f.ID), f})
	}
	if packed.Statistics, err = t.write(ctx, stats); err != nil {
		return nil, fmt.Errorf("statistics: %w", err)
	}
	packed.Objects = t.objects
	return checkpoint.Merge(header, plan, p.Acks, packed)
}

// planned are the operators that have a part in the manifest: all that acked.
func (x *Execution) planned(acks []checkpoint.Ack) []checkpoint.OperatorMeta {
	acked := map[string]bool{}
	for _, ack := range acks {
		for _, op := range ack.Operators {
			acked[op.Operator] = true
		}
	}
	var plan []checkpoint.OperatorMeta
	for _, s := range x.job.Specs {
		if acked[s.Meta.Name] {
			plan = append(plan, s.Meta)
		}
	}
	return plan
}

// operator packs what the subtasks of an operator acked apart from keyed state.
func (t *tables) operator(ctx context.Context, g checkpoint.Gathered) (op checkpoint.PackedOperator, err error) {
	rows := make([]row, 0, len(g.Splits))
	for _, s := range g.Splits {
		rows = append(rows, row{s.ID, s})
	}
	if op.Splits, err = t.write(ctx, rows); err != nil {
		return op, fmt.Errorf("splits: %w", err)
	}
	rows = rows[:0]
	for _, c := range g.Committables {
		rows = append(rows, row{c.ID, c})
	}
	if op.Committables, err = t.write(ctx, rows); err != nil {
		return op, fmt.Errorf("committables: %w", err)
	}
	for _, l := range g.Lists {
		rows = rows[:0]
		for i, e := range l.Elements {
			rows = append(rows, row{fmt.Sprint(i), e})
		}
		ref, err := t.write(ctx, rows)
		if err != nil {
			return op, fmt.Errorf("operator state %q: %w", l.State, err)
		}
		if ref != nil {
			op.Lists = append(op.Lists, checkpoint.ListManifest{Name: l.State, Mode: l.Mode, Run: *ref})
		}
	}
	return op, nil
}

// objectName names a new object of a checkpoint; no other will ever have it.
func (x *Execution) objectName(a *attempt, id checkpoint.ID) string {
	n := x.env.Nonce()
	return checkpoint.ObjectName(checkpoint.Origin{Lineage: a.lineage, Epoch: a.epoch, ID: id}, n[:8])
}
