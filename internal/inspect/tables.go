package inspect

import (
	"context"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// readTable reads a table of a manifest, whose values are CBOR of T.
func readTable[T any](ctx context.Context, store storage.Store, m *checkpoint.Manifest, ref *checkpoint.Ref) ([]T, error) {
	if ref == nil {
		return nil, nil
	}
	run, err := statefile.OpenRun(ctx, store, *ref, m.Objects)
	if err != nil {
		return nil, err
	}
	var out []T
	err = run.All(ctx, statefile.Everything, nil, func(e statefile.Entry) error {
		var v T
		if err := cbor.Unmarshal(e.Value, &v); err != nil {
			return fmt.Errorf("entry %q: %w: %w", e.Key, checkpoint.ErrCorrupt, err)
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

// readStats returns how a checkpoint was taken, and the failed ones that it
// keeps: those since the one before it.
func readStats(ctx context.Context, store storage.Store, m *checkpoint.Manifest) (own checkpoint.Stats, failed []checkpoint.Stats, err error) {
	all, err := readTable[checkpoint.Stats](ctx, store, m, m.Statistics)
	if err != nil {
		return own, nil, fmt.Errorf("read the statistics of checkpoint %d: %w", m.ID, err)
	}
	for _, s := range all {
		switch {
		case s.Failure != nil:
			failed = append(failed, s)
		case s.ID == m.ID:
			own = s
		}
	}
	return own, failed, nil
}
