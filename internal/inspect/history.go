package inspect

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// history is what the log says, and the manifests that it names.
type history struct {
	store    storage.Store
	view     ckptlog.View
	retained []retained // ascending by id
}

// retained is a checkpoint of the log. Its manifest is nil if err says why it
// could not be read: damaged, missing or of a newer version.
type retained struct {
	ckptlog.Retained
	manifest *checkpoint.Manifest
	err      error
}

// readHistory reads the log and then what it names. The job may dispose of a
// checkpoint in between: a manifest that is gone counts as missing only if a
// log that is read afterwards still names it. A store that does not answer is
// an error of the whole.
func readHistory(ctx context.Context, store storage.Store) (*history, error) {
	known := map[string]retained{} // by the manifest's name, which is never used twice
	view, err := ckptlog.Read(ctx, store)
	for ; err == nil; view, err = ckptlog.Read(ctx, store) {
		h := &history{store: store, view: view}
		var missing []checkpoint.ID
		for _, r := range view.Retained() {
			read, ok := known[r.Manifest.Name]
			if !ok || errors.Is(read.err, storage.ErrNotFound) {
				read.manifest, read.err = readManifest(ctx, store, r)
				if read.err != nil && kindOf(read.err) == Unreachable {
					return nil, read.err
				}
				known[r.Manifest.Name] = read
			}
			read.Retained = r // what the log says of it may have changed
			h.retained = append(h.retained, read)
			if errors.Is(read.err, storage.ErrNotFound) {
				missing = append(missing, r.ID)
			}
		}
		gone, err := disposedMeanwhile(ctx, store, missing)
		if err != nil {
			return nil, err
		}
		if !gone {
			return h, nil
		}
	}
	return nil, err
}

// disposedMeanwhile says whether the log no longer names one of ids.
func disposedMeanwhile(ctx context.Context, store storage.Store, ids []checkpoint.ID) (bool, error) {
	if len(ids) == 0 {
		return false, nil
	}
	view, err := ckptlog.Read(ctx, store)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		if _, there := view.ByID(id); !there {
			return true, nil
		}
	}
	return false, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// readManifest reads the manifest that a record names. What is there and is not
// what the record says is damage; one that is not there is storage.ErrNotFound.
func readManifest(ctx context.Context, store storage.Store, r ckptlog.Retained) (*checkpoint.Manifest, error) {
	b, err := store.ReadAt(ctx, r.Manifest.Name, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of checkpoint %d: %w", r.ID, err)
	}
	damaged := func(what, expected, found string) error {
		return &statefile.CorruptError{Object: r.Manifest.Name, Block: -1, What: what, Expected: expected, Found: found}
	}
	if int64(len(b)) != r.Manifest.Size {
		return nil, damaged("size of the manifest", fmt.Sprintf("%d bytes", r.Manifest.Size), fmt.Sprintf("%d bytes", len(b)))
	}
	if sum := crc32.Checksum(b, castagnoli); sum != r.Manifest.CRC {
		// The manifest's own checks may know more of the place.
		if _, err := checkpoint.DecodeManifest(r.Manifest.Name, b); errors.Is(err, checkpoint.ErrCorrupt) {
			return nil, err
		}
		return nil, damaged("checksum of the manifest", fmt.Sprintf("crc32c %08x", r.Manifest.CRC), fmt.Sprintf("crc32c %08x", sum))
	}
	m, err := checkpoint.DecodeManifest(r.Manifest.Name, b)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of checkpoint %d: %w", r.ID, err)
	}
	return m, nil
}

// pins are the names under which a checkpoint is pinned.
func (h *history) pins(id checkpoint.ID) []string {
	var names []string
	for _, p := range h.view.Pins {
		if p.ID == id {
			names = append(names, p.Name)
		}
	}
	return names
}

func (h *history) find(id checkpoint.ID) (retained, bool) {
	for _, r := range h.retained {
		if r.ID == id {
			return r, true
		}
	}
	return retained{}, false
}

// ids are those of all checkpoints, for messages.
func (h *history) ids() []checkpoint.ID {
	ids := make([]checkpoint.ID, len(h.retained))
	for i, r := range h.retained {
		ids[i] = r.ID
	}
	return ids
}
