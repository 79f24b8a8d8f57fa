package inspect

import (
	"context"
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// Collection is what was deleted, or would be.
type Collection struct {
	Store      string    `json:"store"`
	Job        string    `json:"job"`
	DryRun     bool      `json:"dry_run"`
	Generation uint64    `json:"generation"` // the newest; only objects of lower ones are deleted
	Deleted    []Deleted `json:"deleted"`
	Bytes      int64     `json:"deleted_bytes"`
	// Left is what no checkpoint refers to and the newest generation has
	// written: a checkpoint that is being taken may come to refer to it. The job
	// collects it itself.
	Left      int   `json:"left_objects"`
	LeftBytes int64 `json:"left_bytes"`
}

// Deleted is an object that was deleted, and why it could be.
type Deleted struct {
	Object string `json:"object"`
	Size   int64  `json:"size_bytes"`
	Why    string `json:"why"`
}

// Collect deletes what no retained checkpoint refers to and nobody can still
// come to refer to. It owns nothing, so it takes only what generations below the
// newest have left: those are fenced, and no record of theirs can follow.
//
// The objects are listed before the log is read: what was referred to in between
// is then in the log. What a checkpoint holds whose manifest cannot be read is
// unknown; then nothing is deleted. After an error the result says what was
// deleted until then.
func Collect(ctx context.Context, store storage.Store, dryRun bool) (*Collection, error) {
	sizes, names, err := listObjects(ctx, store)
	if err != nil {
		return nil, err
	}
	h, err := readHistory(ctx, store)
	if err != nil {
		return nil, err
	}
	held := map[string]bool{}
	for _, r := range h.retained {
		if r.err != nil {
			return nil, fmt.Errorf("nothing is deleted, since what checkpoint %d holds is unknown: %w", r.ID, r.err)
		}
		held[r.Manifest.Name] = true
		for _, o := range r.manifest.Objects {
			held[o.Name] = true
		}
	}
	c := &Collection{Store: store.String(), Job: h.view.Job, DryRun: dryRun, Generation: h.view.Generation, Deleted: []Deleted{}}
	garbage := checkpoint.Garbage(names, checkpoint.GarbageView{Epoch: checkpoint.Epoch{Generation: h.view.Generation}, Held: held})
	for _, g := range garbage {
		if !dryRun {
			if err := store.Delete(ctx, g.Name); err != nil {
				return c, fmt.Errorf("delete %s: %w", g.Name, err)
			}
		}
		c.Deleted = append(c.Deleted, Deleted{g.Name, sizes[g.Name], g.Why})
		c.Bytes += sizes[g.Name]
	}
	for _, name := range names {
		if o, ours := checkpoint.ParseName(name); ours && !held[name] && o.Epoch.Generation >= h.view.Generation {
			c.Left++
			c.LeftBytes += sizes[name]
		}
	}
	return c, nil
}

// listObjects lists objects with runs and manifests. The log is no part of it:
// it has its own rules.
func listObjects(ctx context.Context, store storage.Store) (sizes map[string]int64, names []string, err error) {
	sizes = map[string]int64{}
	for _, prefix := range []string{checkpoint.ObjectPrefix, checkpoint.ManifestPrefix} {
		infos, err := store.List(ctx, prefix)
		if err != nil {
			return nil, nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		for _, i := range infos {
			sizes[i.Name] = i.Size
			names = append(names, i.Name)
		}
	}
	return sizes, names, nil
}
