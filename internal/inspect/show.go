package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// Detail is one checkpoint: what it holds and how it was taken. Of one that
// failed there is only how.
type Detail struct {
	Store string `json:"store"`
	Job   string `json:"job"`
	Listed
	Mode     string        `json:"mode,omitempty"`
	Parent   checkpoint.ID `json:"parent,omitempty"`
	Entries  int64         `json:"entries"`
	Manifest Object        `json:"manifest"`

	Objects   []Object   `json:"objects,omitempty"`
	Phases    []Phase    `json:"phases"`
	Slowest   *Wait      `json:"slowest,omitempty"`
	Operators []Operator `json:"operators,omitempty"`
	Subtasks  []Subtask  `json:"subtasks,omitempty"`
	Failed    []Listed   `json:"failed_before,omitempty"` // since the checkpoint before it
}

// Object is an object of the store.
type Object struct {
	Name string `json:"name"`
	Size int64  `json:"size_bytes"`
}

// Show returns one checkpoint; id 0 is the newest. barriers adds when each
// channel's barrier arrived.
func Show(ctx context.Context, store storage.Store, id checkpoint.ID, barriers bool) (*Detail, error) {
	for {
		h, err := readHistory(ctx, store)
		if err != nil {
			return nil, err
		}
		r, ok, err := h.choose(id)
		if err != nil {
			return nil, err
		}
		var d *Detail
		if ok {
			d, err = h.detail(ctx, r)
		} else {
			d, err = h.failedDetail(ctx, id)
		}
		if err != nil && kindOf(err) == Missing {
			// Disposed of while it was read: the newest is another one by now, and a
			// named one is gone.
			gone, err2 := disposedMeanwhile(ctx, store, h.ids())
			if err2 != nil {
				return nil, err2
			}
			if gone {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		if !barriers {
			for i := range d.Subtasks {
				d.Subtasks[i].Channels = nil
			}
		}
		return d, nil
	}
}

// choose returns the checkpoint with the id, or the newest for 0.
func (h *history) choose(id checkpoint.ID) (r retained, ok bool, err error) {
	if id != 0 {
		r, ok = h.find(id)
		return r, ok, nil
	}
	if len(h.retained) == 0 {
		return r, false, fmt.Errorf("%s: job %q has no checkpoint yet", h.store, h.view.Job)
	}
	return h.retained[len(h.retained)-1], true, nil
}

func (h *history) detail(ctx context.Context, r retained) (*Detail, error) {
	if r.err != nil {
		return nil, r.err
	}
	m := r.manifest
	c, failed, err := h.listed(ctx, r)
	if err != nil {
		return nil, err
	}
	stats, _, err := readStats(ctx, h.store, m)
	if err != nil {
		return nil, err
	}
	d := &Detail{
		Store: h.store.String(), Job: m.Job, Listed: c, Mode: m.Mode.String(), Parent: m.Parent,
		Manifest: Object{r.Manifest.Name, r.Manifest.Size}, Failed: failed,
	}
	_, d.Entries = stateSize(m)
	for _, o := range m.Objects {
		d.Objects = append(d.Objects, Object{o.Name, o.Size})
	}
	for i := range m.Operators {
		op, err := readOperator(ctx, h.store, m, &m.Operators[i])
		if err != nil {
			return nil, fmt.Errorf("checkpoint %d, operator %q: %w", m.ID, m.Operators[i].Name, err)
		}
		d.Operators = append(d.Operators, op)
	}
	d.timings(stats)
	return d, nil
}

// failedDetail finds a failed checkpoint in the manifests that keep such.
func (h *history) failedDetail(ctx context.Context, id checkpoint.ID) (*Detail, error) {
	for i := len(h.retained) - 1; i >= 0; i-- {
		r := h.retained[i]
		if r.manifest == nil {
			continue
		}
		_, failed, err := readStats(ctx, h.store, r.manifest)
		if err != nil {
			return nil, err
		}
		for _, s := range failed {
			if s.ID == id {
				d := &Detail{Store: h.store.String(), Job: r.manifest.Job, Listed: listedFailure(r, s), Mode: r.manifest.Mode.String()}
				d.timings(s)
				return d, nil
			}
		}
	}
	return nil, fmt.Errorf("%s: there is no checkpoint %d (kept: %v)", h.store, id, h.ids())
}

// since is how long after the trigger something was; 0 if it was not.
func since(s checkpoint.Stats, t int64) Millis {
	if t == 0 {
		return 0
	}
	return Millis(time.Duration(t - s.Triggered))
}
