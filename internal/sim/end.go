package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/statefile"
)

// atEnd checks everything once the job is done: a further start finds nothing
// to do, the output is what it must be, what is retained can be read, and
// nothing else is left behind.
func (w *world) atEnd() {
	for w.disk.Land() {
	}
	w.audit.look()
	clean := w.result.Crashes == 0 && w.result.Restarts == 0 && w.started == 1 && w.faults == w.maxFaults && w.result.Failed == 0
	if clean {
		// The job ends without waiting for the last deletes.
		w.checkLeft("after a run in which nothing failed", w.audit.disposed[max(0, len(w.audit.disposed)-2):])
	}
	w.calm, w.finished = true, false
	w.started++ // so that it counts as a further start
	w.start(true)
	last := w.procs[0]
	w.loop()
	w.started--
	if w.broken != nil {
		return
	}
	if last.epoch.Attempt > 1 || len(last.completes) > 0 {
		w.fail("a start after the end of the job did more than to end: attempt %v, checkpoints %v", last.epoch, last.completes)
		return
	}
	w.checkBank()
	w.checkDropped()
	w.checkRetained()
	w.collect()
	w.checkLeft("after collection", nil)
}

// checkBank compares what is committed with the input.
func (w *world) checkBank() {
	in := make([][]order, len(w.in.splits))
	for i, s := range w.in.splits {
		in[i] = s.orders
	}
	a := &w.audit
	out := w.committedOn(func(t *transaction) bool { return a.onBranch(t, a.lineage) })
	quiet := w.result.Crashes == 0 && w.result.Restarts == 0 && w.started == 1
	if err := w.checkAll(in, out, promised(w.Mode, quiet)); err != nil {
		w.fail("%w", err)
	}
	w.checkBranches(in)
}

// checkAll compares what was committed on a branch with the input.
func (w *world) checkAll(in [][]order, out output, may promise) error {
	if err := checkOutput(in, out.ledger, out.totals, w.shape(), may); err != nil {
		return err
	}
	if w.journal && w.Job == nil {
		if err := checkJournal(w.in.sources[0], out.journal, may); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return nil
}

func (w *world) shape() shape { return shape{w.stages, w.keepsAlarms} }

// checkDropped says whether recovery has dropped what nobody will commit.
func (w *world) checkDropped() {
	for id, t := range w.bank.txs {
		if t.state == staged || t.state == prepared {
			w.fail("transaction %s is neither committed nor dropped", id)
		}
	}
}

// checkRetained reads everything that the log says can be restored.
func (w *world) checkRetained() {
	ctx, store := context.Background(), w.disk.Open()
	v, err := ckptlog.Read(ctx, store)
	if err != nil {
		w.fail("read the log: %w", err)
		return
	}
	for name, id := range w.audit.pins {
		if _, there := v.ByID(id); !there {
			w.fail("checkpoint %d is not kept, but pinned by %s", id, name)
		}
	}
	for _, r := range v.Retained() {
		m, err := cluster.ReadManifest(ctx, store, r)
		if err != nil {
			w.fail("checkpoint %d is unreadable: %w", r.ID, err)
			return
		}
		for what, ref := range m.Refs() {
			run, err := statefile.OpenRun(ctx, store, *ref, m.Objects)
			if err == nil {
				err = run.All(ctx, statefile.Everything, nil, func(statefile.Entry) error { return nil })
			}
			if err != nil {
				w.fail("checkpoint %d is unreadable: %s: %w", r.ID, what, err)
			}
		}
	}
	if last, ok := v.Latest(); !ok {
		w.fail("no checkpoint is left in the log")
	} else if last.Committables && !last.Committed {
		w.fail("checkpoint %d was never committed", last.ID)
	}
}

// collect removes what the offline verb may remove: what nobody refers to, of
// generations that have ended.
func (w *world) collect() {
	ctx, store := context.Background(), w.disk.Open()
	v, err := ckptlog.Read(ctx, store)
	if err != nil {
		w.fail("read the log: %w", err)
		return
	}
	view := checkpoint.GarbageView{Epoch: checkpoint.Epoch{Generation: v.Generation}, Held: w.held(v)}
	for _, d := range checkpoint.Garbage(w.disk.Names(), view) {
		if err := store.Delete(ctx, d.Name); err != nil {
			w.fail("collect: %w", err)
		}
	}
}

func (w *world) held(v ckptlog.View) map[string]bool {
	held := map[string]bool{}
	for _, r := range v.Retained() {
		held[r.Manifest.Name] = true
		m, err := cluster.ReadManifest(context.Background(), w.disk.Open(), r)
		if err != nil {
			w.fail("checkpoint %d is unreadable: %w", r.ID, err)
			continue
		}
		for _, o := range m.Objects {
			held[o.Name] = true
		}
	}
	return held
}

// checkLeft says whether the store holds anything that no checkpoint needs.
func (w *world) checkLeft(when string, but []checkpoint.ID) {
	v, err := ckptlog.Read(context.Background(), w.disk.Open())
	if err != nil {
		w.fail("read the log: %w", err)
		return
	}
	held := w.held(v)
	for _, name := range w.disk.Names() {
		if !held[name] && (strings.HasPrefix(name, checkpoint.ObjectPrefix) || strings.HasPrefix(name, checkpoint.ManifestPrefix)) {
			if o, _ := checkpoint.ParseName(name); !slices.Contains(but, o.ID) {
				w.fail("%s: %s is left, and no checkpoint holds it", when, name)
			}
		}
		delete(held, name)
	}
	for name := range held {
		w.fail("%s: %s is missing, a checkpoint holds it", when, name)
	}
}
