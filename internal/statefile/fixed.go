package statefile

import (
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// AddFixed adds entries of keys and values of fixed width: what Add does for
// each of them, in a fraction of the time. Keys and vals hold as many of the
// run's widths, one behind the other, as there are hashes. The run must have
// neither sub-keys nor times nor tombstones.
func (w *RunWriter) AddFixed(hashes []uint64, keys, vals []byte) error {
	b, kw, vw := w.block, w.c.KeyWidth, w.c.ValWidth
	switch {
	case w.err != nil:
		return w.err
	case w.ended || !b.plain || w.c.Kind == checkpoint.TableRun || len(keys) != kw*len(hashes) || len(vals) != vw*len(hashes):
		w.err = fmt.Errorf("add to run: %d hashes, %d bytes of keys, %d bytes of values to a run of %+v", len(hashes), len(keys), len(vals), w.c)
		return w.err
	case !ascend(w.last, hashes, w.c.Range.Hi):
		return w.addEach(hashes, keys, vals)
	}
	for len(hashes) > 0 {
		n := min(len(hashes), (blockTarget-b.raw)/(kw+vw))
		if n <= 0 {
			if b.n > 0 {
				if err := w.flush(); err != nil {
					return err
				}
				continue
			}
			n = 1 // a block has an entry, however large
		}
		b.addFixed(hashes[:n], keys[:n*kw], vals[:n*vw])
		w.last = hashes[n-1]
		w.ref.Entries += int64(n)
		w.ref.Bytes += int64(n * (kw + vw))
		hashes, keys, vals = hashes[n:], keys[n*kw:], vals[n*vw:]
	}
	return nil
}

// ascend says whether hashes ascend from lo to hi.
func ascend(lo uint64, hashes []uint64, hi uint64) bool {
	for _, h := range hashes {
		if h < lo {
			return false
		}
		lo = h
	}
	return lo <= hi
}

// addEach finds out which entry cannot be added.
func (w *RunWriter) addEach(hashes []uint64, keys, vals []byte) error {
	kw, vw := w.c.KeyWidth, w.c.ValWidth
	for i, h := range hashes {
		if err := w.Add(h, keys[i*kw:(i+1)*kw], nil, vals[i*vw:(i+1)*vw], 0); err != nil {
			return err
		}
	}
	return nil
}

// addFixed adds entries that fit the columns and the block.
func (b *columns) addFixed(hashes []uint64, keys, vals []byte) {
	if b.n == 0 {
		b.min = hashes[0]
	}
	b.max = hashes[len(hashes)-1]
	b.n += len(hashes)
	b.raw += len(keys) + len(vals)
	b.minTimer = 0
	b.keys.data, b.vals.data = append(b.keys.data, keys...), append(b.vals.data, vals...)
}
