package statestore

import (
	"context"
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
)

// stateRuns are the runs of one state, one a segment that has entries.
type stateRuns struct {
	ranges  []checkpoint.HashRange
	pending []*statefile.Pending
}

// tableWriter is the reader of one table of a snapshot. It leaves each page by
// marking it, and touches it no more.
type tableWriter struct {
	ctx  context.Context
	sn   *Snapshot
	v    *tableView
	p    *statefile.Packer
	d    *Decl
	bits uint8 // of segments

	run  *statefile.RunWriter // of the segment in hand; nil: none
	seg  checkpoint.HashRange
	done stateRuns

	scratch unsafe.Pointer // a typed value
	enc     []byte
	fixed   bool   // keys and values are written as they stand in their slots
	keys    []byte // columns of a page
	vals    []byte
	sorted  sorter
	subs    sorter
	ahead   ahead
}

func newTableWriter(ctx context.Context, sn *Snapshot, v *tableView, p *statefile.Packer) *tableWriter {
	w := &tableWriter{ctx: ctx, sn: sn, v: v, p: p, d: &v.t.decl, bits: segmentBits(v.bytes)}
	if w.d.Value.make != nil {
		w.scratch = w.d.Value.make()
	}
	w.fixed = w.d.Kind == checkpoint.ValueState && w.d.TTL == 0 && v.space.sp.key.form == inlineKey &&
		w.d.Value.form == plainValue && w.d.Value.layout.Dense && w.d.Value.size > 0
	w.ahead.init(v)
	return w
}

func (w *tableWriter) write() (_ stateRuns, err error) {
	defer func() {
		w.ahead.end()
		if err != nil && w.run != nil {
			w.run.Abort()
		}
	}()
	for i := range w.v.dirs {
		w.v.dirs[i].each(func(p *page) bool {
			if err = w.sn.check(w.ctx); err == nil {
				err = w.visit(p)
			}
			return err == nil
		})
		if err != nil {
			return stateRuns{}, err
		}
	}
	for w.ahead.n > 0 {
		if err := w.page(w.ahead.pop(), nil); err != nil {
			return stateRuns{}, err
		}
	}
	return w.done, w.finish()
}

// visit writes a page of the table, or copies it and writes the oldest copy in
// its stead if there are as many as there may be.
func (w *tableWriter) visit(p *page) error {
	o := w.sn.overlay(&w.v.space, p)
	if !w.ahead.takes(p) {
		for w.ahead.n > 0 { // they come before p
			if err := w.page(w.ahead.pop(), nil); err != nil {
				return err
			}
		}
		if err := w.page(p, o); err != nil {
			return err
		}
		w.sn.leave(p)
		return nil
	}
	if w.ahead.full() {
		if err := w.page(w.ahead.pop(), nil); err != nil {
			return err
		}
	}
	w.ahead.push(p, o)
	w.sn.leave(p)
	return nil
}

// page writes the entries of a page of the table, which is one that the writer
// leaves alone or a copy.
func (w *tableWriter) page(p *page, o *overlay) error {
	v, so := &w.v.space, &w.sorted
	so.sort(v.sp, w.v.chunks, p)
	if w.fixed {
		return w.fixedPage(p, o)
	}
	so.touchKeys(v.sp, w.v.chunks, p)
	for _, i := range so.order[:so.n] {
		hash := so.hashes[i&slotMask]
		if w.run == nil || hash > w.seg.Hi {
			if err := w.next(hash); err != nil {
				return err
			}
		}
		key := v.sp.keyAt(w.v.chunks, so.at(p, i))
		if err := w.entry(hash, key, so.tail(v.sp, p, o, i)); err != nil {
			return err
		}
	}
	return nil
}

// fixedPage is page for keys and values that are written as they stand in their
// slots: whole columns are handed on.
func (w *tableWriter) fixedPage(p *page, o *overlay) error {
	so, sp := &w.sorted, w.v.space.sp
	kw, vw := sp.key.size, w.d.Value.size
	w.keys, w.vals = w.keys[:0], w.vals[:0]
	for at, i := range so.order[:so.n] {
		so.sorted[at&slotMask] = so.hashes[i&slotMask]
		w.keys = appendMemory(w.keys, so.at(p, i), kw)
		w.vals = appendMemory(w.vals, so.tail(sp, p, o, i), vw)
	}
	for from := 0; from < so.n; {
		hash := so.sorted[from&slotMask]
		if w.run == nil || hash > w.seg.Hi {
			if err := w.next(hash); err != nil {
				return err
			}
		}
		to := from + 1
		for to < so.n && so.sorted[to&slotMask] <= w.seg.Hi {
			to++
		}
		if err := w.run.AddFixed(so.sorted[from:to], w.keys[from*int(kw):to*int(kw)], w.vals[from*int(vw):to*int(vw)]); err != nil {
			return err
		}
		from = to
	}
	return nil
}

// appendMemory appends n bytes at p. To copy a number by a call costs more than
// all else that is done for an entry.
func appendMemory(b []byte, p unsafe.Pointer, n uintptr) []byte {
	if n == 8 {
		return binary.NativeEndian.AppendUint64(b, *(*uint64)(p))
	}
	return append(b, unsafe.Slice((*byte)(p), n)...)
}

// next ends the run in hand and begins that of the segment of a hash.
func (w *tableWriter) next(hash uint64) error {
	if err := w.finish(); err != nil {
		return err
	}
	w.seg = w.sn.segment(hash, w.bits)
	c := statefile.RunConfig{
		Kind: checkpoint.BaseRun, Range: w.seg,
		KeyWidth: w.v.space.sp.key.width, SubWidth: statefile.Absent, ValWidth: w.d.Value.width,
		Times: w.d.TTL > 0,
	}
	switch w.d.Kind {
	case checkpoint.MapState:
		c.SubWidth = w.d.Sub.width
	case checkpoint.ListState:
		c.SubWidth, c.ValWidth = listIndexWidth, statefile.Variable
	case checkpoint.TimerState:
		c.Kind, c.ValWidth, c.Times = checkpoint.TimerRun, timerWidth, true
	}
	w.run = w.p.NewRun(c)
	return nil
}

func (w *tableWriter) finish() error {
	if w.run == nil {
		return nil
	}
	p, err := w.run.Finish()
	w.run = nil
	if err != nil {
		return err
	}
	w.done.ranges = append(w.done.ranges, w.seg)
	w.done.pending = append(w.done.pending, p)
	return nil
}

const (
	listIndexWidth = 8
	timerWidth     = 8
	// listPart is how much of a list is put into one entry.
	listPart = 32 << 10
)

// entry writes one key: a value, the parts of a list, a timer, or the entries
// of a map.
func (w *tableWriter) entry(hash uint64, key []byte, tail unsafe.Pointer) error {
	written := uint32(0)
	if off := w.v.t.timeOff; off != 0 {
		written = *(*uint32)(unsafe.Add(tail, off))
		if w.v.t.s.expired(written, w.d.TTL, w.sn.now) {
			return nil
		}
	}
	switch w.d.Kind {
	case checkpoint.MapState:
		return w.mapEntries(hash, key, *(*mapRoot)(tail))
	case checkpoint.ListState:
		return w.list(hash, key, *(*listRoot)(tail), written)
	case checkpoint.TimerState:
		at := *(*int64)(tail)
		w.enc = binary.LittleEndian.AppendUint64(w.enc[:0], uint64(at))
		return w.run.Add(hash, key, nil, w.enc, statefile.TimerSeconds(at))
	}
	return w.run.Add(hash, key, nil, w.value(tail), written)
}

// value returns the encoding of the value in slot memory.
func (w *tableWriter) value(tail unsafe.Pointer) []byte {
	v := &w.d.Value
	if v.form == plainValue && v.layout.Dense {
		return unsafe.Slice((*byte)(tail), v.size)
	}
	w.enc = v.appendSlot(w.enc[:0], w.v.chunks, tail, w.scratch)
	return w.enc
}

// list writes a list in parts, each behind the number of its first element.
func (w *tableWriter) list(hash uint64, key []byte, r listRoot, written uint32) (err error) {
	var index [listIndexWidth]byte
	n, width := uint64(0), w.d.Value.width
	w.enc = w.enc[:0]
	part := func() bool {
		err = w.run.Add(hash, key, index[:], w.enc, written)
		binary.LittleEndian.PutUint64(index[:], n)
		w.enc = w.enc[:0]
		return err == nil
	}
	eachElement(w.v.blocks, r, width, func(enc []byte) bool {
		if len(w.enc) > 0 && len(w.enc)+len(enc) > listPart {
			if !part() {
				return false
			}
		}
		w.enc = binary.LittleEndian.AppendUint32(w.enc, uint32(len(enc)))
		w.enc = append(w.enc, enc...)
		n++
		return true
	})
	if err == nil {
		part()
	}
	return err
}

// mapEntries writes the map of a key, in the order of the hashes of sub-keys.
func (w *tableWriter) mapEntries(hash uint64, key []byte, r mapRoot) (err error) {
	v := &w.v.sub
	page := func(p *page) bool {
		if err = w.sn.check(w.ctx); err == nil {
			err = w.mapPage(hash, key, p)
		}
		return err == nil
	}
	if r.kind == rootPage {
		page(v.pages[r.id])
	} else {
		w.v.roots[r.id].each(page)
	}
	return err
}

func (w *tableWriter) mapPage(hash uint64, key []byte, p *page) error {
	v, ml := &w.v.sub, w.v.t.maps
	o, so := w.sn.overlay(v, p), &w.subs
	so.sort(v.sp, w.v.chunks, p)
	so.touchKeys(v.sp, w.v.chunks, p)
	for _, i := range so.order[:so.n] {
		tail, written := so.tail(v.sp, p, o, i), uint32(0)
		if ml.timeOff != 0 {
			written = *(*uint32)(unsafe.Add(tail, ml.timeOff))
			if w.v.t.s.expired(written, w.d.TTL, w.sn.now) {
				continue
			}
		}
		if err := w.run.Add(hash, key, v.sp.keyAt(w.v.chunks, so.at(p, i)), w.value(tail), written); err != nil {
			return err
		}
	}
	w.sn.leave(p)
	return nil
}

// corrupt is what a checkpoint holds that this package did not write.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", statefile.ErrCorrupt, fmt.Errorf(format, args...))
}
