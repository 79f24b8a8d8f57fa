package statestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// Restore loads what states of a checkpoint hold of this store's range,
// whatever the parallelism was. It must be called before any key is taken in
// hand, on any goroutine. States that are not declared, under their name or a
// former one, are left out: it is the caller who refuses them.
//
// Nothing comes short: entries are counted, and what a checkpoint holds more or
// less of than it says is statefile.ErrCorrupt.
func (s *Store) Restore(ctx context.Context, store storage.Store, states []checkpoint.StateManifest, objects []checkpoint.Object) error {
	for _, t := range s.tables {
		m := t.claim(states)
		if m == nil {
			continue
		}
		if err := t.restore(ctx, store, m, objects); err != nil {
			return fmt.Errorf("restore state %q: %w", m.Name, err)
		}
	}
	return nil
}

// claim finds the state that is restored into the table.
func (t *Table) claim(states []checkpoint.StateManifest) *checkpoint.StateManifest {
	for _, name := range append([]string{t.decl.Name}, t.decl.Former...) {
		if i := slices.IndexFunc(states, func(m checkpoint.StateManifest) bool { return m.Name == name }); i >= 0 {
			return &states[i]
		}
	}
	return nil
}

func (t *Table) restore(ctx context.Context, store storage.Store, m *checkpoint.StateManifest, objects []checkpoint.Object) (err error) {
	defer func() { // of codecs and of keys that cannot be decoded
		if r := recover(); r != nil {
			f, ok := r.(Failure)
			if !ok {
				panic(r)
			}
			err = corrupt("%w", f.Err)
		}
	}()
	if m.Kind != t.decl.Kind {
		return fmt.Errorf("it is a %s in the checkpoint and a %s now", m.Kind, t.decl.Kind)
	}
	var entries int64
	for _, seg := range m.Segments {
		entries += seg.Base.Entries
	}
	if entries != m.Entries {
		return corrupt("the checkpoint counts %d entries, its segments hold %d", m.Entries, entries)
	}
	r := newTableReader(t, m)
	for _, seg := range m.Segments {
		if err := r.segment(ctx, store, seg, objects); err != nil {
			return err
		}
	}
	t.s.EndKey()
	if t.timers != nil {
		t.rebuildTimers()
	}
	return nil
}

// tableReader puts the entries of runs into a table.
type tableReader struct {
	t     *Table
	floor uint32
	hash  statefile.Hash
	list  uint64 // elements of the list in hand so far
}

func newTableReader(t *Table, m *checkpoint.StateManifest) *tableReader {
	return &tableReader{t: t, floor: uint32(m.TTLFloor), hash: t.sp.hash}
}

func (r *tableReader) segment(ctx context.Context, store storage.Store, seg checkpoint.Segment, objects []checkpoint.Object) error {
	if !seg.Range.Overlaps(r.t.s.cfg.Range) {
		return nil
	}
	if len(seg.Deltas) > 0 {
		return errors.New("it is incremental, which this version does not read")
	}
	run, err := statefile.OpenRun(ctx, store, seg.Base, objects)
	if err != nil {
		return err
	}
	return run.All(ctx, r.t.s.cfg.Range, r.hash, func(e statefile.Entry) error {
		if r.t.decl.TTL > 0 && e.Time < r.floor {
			return nil
		}
		return r.entry(e)
	})
}

func (r *tableReader) entry(e statefile.Entry) error {
	t, s := r.t, r.t.s
	if w := t.sp.key.width; w > 0 && len(e.Key) != w {
		return corrupt("a key of %d bytes; it takes %d", len(e.Key), w)
	}
	s.key.setEncoded(&t.sp.key, e.Key, e.Hash)
	s.seq++
	s.keyed = true
	switch t.decl.Kind {
	case checkpoint.MapState:
		return r.mapEntry(e)
	case checkpoint.ListState:
		return r.listPart(e)
	}
	if t.seek(); t.cur.off != 0 {
		return corrupt("key %s is there twice", s.describeKey())
	}
	tail := t.slot()
	if t.decl.Kind == checkpoint.TimerState {
		if len(e.Value) != timerWidth {
			return corrupt("a timer of %d bytes", len(e.Value))
		}
		*(*int64)(tail) = int64(binary.LittleEndian.Uint64(e.Value))
		return nil
	}
	if t.timeOff != 0 {
		*(*uint32)(unsafe.Add(tail, t.timeOff)) = r.written(e)
	}
	return r.value(tail, e.Value)
}

// written is the write time of an entry; now, if the state had no TTL when the
// checkpoint was taken.
func (r *tableReader) written(e statefile.Entry) uint32 {
	if e.Time == 0 {
		return r.t.s.nowSeconds()
	}
	return e.Time
}

func (r *tableReader) value(tail unsafe.Pointer, b []byte) error {
	t := r.t
	if err := t.decl.Value.decodeSlot(t.sp.arena, tail, b, t.scratch); err != nil {
		return corrupt("value of key %s: %w", t.s.describeKey(), err)
	}
	return nil
}

func (r *tableReader) mapEntry(e statefile.Entry) error {
	ml := r.t.maps
	if w := ml.sub.key.width; w > 0 && len(e.Sub) != w {
		return corrupt("a map key of %d bytes; it takes %d", len(e.Sub), w)
	}
	ml.key.setEncoded(&ml.sub.key, e.Sub, ml.sub.hash(e.Sub))
	if root := ml.root(); root != nil {
		p := ml.page(root)
		if _, off := ml.sub.find(p, p.mask(), &ml.key); off != 0 {
			return corrupt("key %s: map key %x is there twice", r.t.s.describeKey(), e.Sub)
		}
	}
	tail := ml.slot()
	if ml.timeOff != 0 {
		*(*uint32)(unsafe.Add(tail, ml.timeOff)) = r.written(e)
	}
	return r.value(tail, e.Value)
}

func (r *tableReader) listPart(e statefile.Entry) error {
	t := r.t
	root := (*listRoot)(t.slot())
	if t.timeOff != 0 {
		*(*uint32)(unsafe.Add(unsafe.Pointer(root), t.timeOff)) = r.written(e)
	}
	if len(e.Sub) != listIndexWidth || binary.LittleEndian.Uint64(e.Sub) != uint64(root.count) {
		return corrupt("list of key %s: part %x follows %d elements", t.s.describeKey(), e.Sub, root.count)
	}
	for b := e.Value; len(b) > 0; {
		if len(b) < 4 || uint64(len(b)-4) < uint64(binary.LittleEndian.Uint32(b)) {
			return corrupt("list of key %s: an element runs past its part", t.s.describeKey())
		}
		n := binary.LittleEndian.Uint32(b)
		enc := b[4 : 4+n]
		if err := t.decl.Value.decodeTyped(enc, t.scratch); err != nil {
			return corrupt("list of key %s: element %d: %w", t.s.describeKey(), root.count, err)
		}
		t.lists.add(root, enc)
		b = b[4+n:]
	}
	return nil
}
