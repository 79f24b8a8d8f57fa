package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// restoredCheckpoint is a checkpoint as it was read back, by the names it has
// in the manifest; mapTo finds out what of the job each part belongs to.
type restoredCheckpoint struct {
	entry    ckptlog.Retained
	manifest *checkpoint.Manifest
	old      []restoredOperator // by operator of the manifest

	committables sinkCommittables // by node of the job
	ops          []*operator.Restore
	splits       map[int][]checkpoint.Split // by node
	enumerators  map[int][]byte
}

// restoredOperator is what an operator of the manifest keeps in tables.
type restoredOperator struct {
	splits       []checkpoint.Split
	enumerator   []byte
	committables []checkpoint.Committable
}

func (r *restoredCheckpoint) final() bool { return r.entry.Purpose == checkpoint.Final }

// readCheckpoint reads and checks the manifest that the log names, and its
// tables, and sees to it that every object that it names is there: what is
// missing must fail now and not when the job has run for an hour.
func (x *Execution) readCheckpoint(ctx context.Context, entry ckptlog.Retained) (*restoredCheckpoint, error) {
	m, err := ReadManifest(ctx, x.opt.Store, entry)
	if err != nil {
		return nil, err
	}
	for _, o := range m.Objects {
		info, err := x.opt.Store.Stat(ctx, o.Name)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return nil, &statefile.CorruptError{Object: o.Name, Block: -1, What: "object", Expected: fmt.Sprintf("%d bytes", o.Size), Found: "nothing"}
		case err != nil:
			return nil, fmt.Errorf("restore checkpoint %d: %w", entry.ID, err)
		case info.Size != o.Size:
			return nil, &statefile.CorruptError{Object: o.Name, Block: -1, What: "size", Expected: fmt.Sprint(o.Size), Found: fmt.Sprint(info.Size)}
		}
	}
	r := &restoredCheckpoint{entry: entry, manifest: m, committables: sinkCommittables{}}
	for i := range m.Operators {
		op, err := x.readTables(ctx, m, &m.Operators[i])
		if err != nil {
			return nil, fmt.Errorf("restore checkpoint %d, operator %q: %w", entry.ID, m.Operators[i].Name, err)
		}
		r.old = append(r.old, op)
		if len(op.committables) > 0 {
			node := slices.IndexFunc(x.job.Specs, func(s operator.Spec) bool { return s.Meta.Name == m.Operators[i].Name })
			if node < 0 {
				node = x.former(m.Operators[i].Name)
			}
			if node < 0 {
				return nil, fmt.Errorf("restore checkpoint %d: no sink of the job commits the %d committables of %q", entry.ID, len(op.committables), m.Operators[i].Name)
			}
			for _, c := range op.committables {
				r.committables[node] = append(r.committables[node], connector.Committable{ID: c.ID, Data: c.Data})
			}
		}
	}
	return r, nil
}

func (x *Execution) former(name string) int {
	return slices.IndexFunc(x.job.Plan.Graph.Nodes, func(n graph.Node) bool { return slices.Contains(n.Former, name) })
}

// ReadManifest reads the manifest that a Checkpoint record names. What is there
// and is not what the record says is damage.
func ReadManifest(ctx context.Context, store storage.Store, entry ckptlog.Retained) (*checkpoint.Manifest, error) {
	b, err := store.ReadAt(ctx, entry.Manifest.Name, 0, -1)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, &statefile.CorruptError{Object: entry.Manifest.Name, Block: -1, What: "manifest", Expected: fmt.Sprintf("%d bytes", entry.Manifest.Size), Found: "nothing"}
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest of checkpoint %d: %w", entry.ID, err)
	}
	if int64(len(b)) != entry.Manifest.Size {
		return nil, &statefile.CorruptError{Object: entry.Manifest.Name, Block: -1, What: "size", Expected: fmt.Sprint(entry.Manifest.Size), Found: fmt.Sprint(len(b))}
	}
	if crc := crc32c(b); crc != entry.Manifest.CRC {
		return nil, &statefile.CorruptError{Object: entry.Manifest.Name, Block: -1, What: "checksum", Expected: fmt.Sprintf("%08x", entry.Manifest.CRC), Found: fmt.Sprintf("%08x", crc)}
	}
	m, err := checkpoint.DecodeManifest(entry.Manifest.Name, b)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of checkpoint %d: %w", entry.ID, err)
	}
	return m, nil
}

func (x *Execution) readTables(ctx context.Context, m *checkpoint.Manifest, op *checkpoint.OperatorManifest) (r restoredOperator, err error) {
	err = readTable(ctx, x.opt.Store, m, op.Splits, func(e statefile.Entry) error {
		var s checkpoint.Split
		if err := cbor.Unmarshal(e.Value, &s); err != nil {
			return fmt.Errorf("split %q: %w", e.Key, err)
		}
		r.splits = append(r.splits, s)
		return nil
	})
	if err != nil {
		return r, err
	}
	err = readTable(ctx, x.opt.Store, m, op.Enumerator, func(e statefile.Entry) error {
		r.enumerator = slices.Clone(e.Value)
		return nil
	})
	if err != nil {
		return r, err
	}
	err = readTable(ctx, x.opt.Store, m, op.Committables, func(e statefile.Entry) error {
		var c checkpoint.Committable
		if err := cbor.Unmarshal(e.Value, &c); err != nil {
			return fmt.Errorf("committable %q: %w", e.Key, err)
		}
		r.committables = append(r.committables, c)
		return nil
	})
	return r, err
}

func readTable(ctx context.Context, store storage.Store, m *checkpoint.Manifest, ref *checkpoint.Ref, f func(statefile.Entry) error) error {
	if ref == nil {
		return nil
	}
	run, err := statefile.OpenRun(ctx, store, *ref, m.Objects)
	if err != nil {
		return err
	}
	return run.All(ctx, statefile.Everything, nil, f)
}

// mapTo decides what of the job takes which part of the checkpoint; state that
// nobody claims is refused by name. A name to drop that is not there is only told
// of, by the first attempt of a start: who keeps it on the command line must be
// able to start again when it is gone.
func (r *restoredCheckpoint) mapTo(x *Execution, first bool) error {
	metas := make([]checkpoint.OperatorMeta, len(x.job.Specs))
	for i, s := range x.job.Specs {
		metas[i] = s.Meta
	}
	plan := x.job.Plan.Restorables(metas)
	mapping, err := graph.CheckRestore(plan, r.manifest, x.opt.DropState)
	if first {
		kept, wrong := graph.CheckDrops(plan, r.manifest, x.opt.DropState)
		if wrong != nil {
			x.log.Warn("a name of -drop-state is not in the checkpoint", "checkpoint", r.entry.ID, "err", wrong)
		}
		for _, name := range kept {
			x.log.Warn("state is not dropped: the job claims it, so it is kept; take its operator out of the job, or start fresh", "checkpoint", r.entry.ID, "state", name)
		}
	}
	if err != nil {
		return &permanentError{fmt.Errorf("restore checkpoint %d: %w", r.entry.ID, err)}
	}
	for _, d := range mapping.Dropped {
		entries, bytes := sizeOf(r.manifest, d)
		x.log.Warn("state is dropped", "checkpoint", r.entry.ID, "state", d, "entries", entries, "bytes", bytes)
	}
	r.ops = make([]*operator.Restore, len(metas))
	r.splits, r.enumerators = map[int][]checkpoint.Split{}, map[int][]byte{}
	for node, op := range mapping.Operators {
		if op.Old < 0 {
			continue
		}
		old := r.manifest.Operators[op.Old]
		states := make([]checkpoint.StateManifest, 0, len(op.States))
		for _, s := range op.States {
			if s.Old < 0 {
				continue
			}
			st := old.States[s.Old]
			st.Name = s.Name // as the job calls it now
			states = append(states, st)
		}
		old.States = states
		r.ops[node] = &operator.Restore{
			ID: r.entry.ID, Op: old, Objects: r.manifest.Objects,
			Finished: old.Parallelism > 0 && len(old.Finished) == old.Parallelism,
		}
		r.splits[node], r.enumerators[node] = r.old[op.Old].splits, r.old[op.Old].enumerator
	}
	return nil
}

// sizeOf is what a checkpoint holds of an operator, or of an operator/state.
func sizeOf(m *checkpoint.Manifest, name string) (entries, bytes int64) {
	for _, op := range m.Operators {
		for _, s := range op.States {
			if name == op.Name || name == op.Name+"/"+s.Name {
				entries += s.Entries
				bytes += s.Bytes
			}
		}
	}
	return entries, bytes
}

func (r *restoredCheckpoint) operator(node int) *operator.Restore {
	if r == nil {
		return nil
	}
	return r.ops[node]
}

func (r *restoredCheckpoint) objects() manifestObjects {
	return objectsOf(r.entry.Manifest.Name, r.manifest)
}

func objectsOf(name string, m *checkpoint.Manifest) manifestObjects {
	o := manifestObjects{manifest: name}
	for _, obj := range m.Objects {
		o.objects = append(o.objects, obj.Name)
	}
	return o
}

// records are the totals of sources and sinks at the checkpoint.
func (r *restoredCheckpoint) records() map[string]int64 { return recordsOf(r.manifest) }

func recordsOf(m *checkpoint.Manifest) map[string]int64 {
	out := map[string]int64{}
	for _, op := range m.Operators {
		if op.Kind == "source" || op.Kind == "sink" {
			out[op.Name] = op.Records
		}
	}
	return out
}

// permanentError is a failure that a restart in this process cannot mend.
type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

func isDamage(err error) bool {
	var p *permanentError
	return errors.As(err, &p) || errors.Is(err, statefile.ErrCorrupt) || errors.Is(err, checkpoint.ErrCorrupt) ||
		errors.Is(err, ckptlog.ErrCorrupt) || errors.Is(err, storage.ErrPoisoned)
}
