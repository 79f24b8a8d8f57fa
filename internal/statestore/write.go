package statestore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
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
	sorted  sorter
	subs    sorter
}

func newTableWriter(ctx context.Context, sn *Snapshot, v *tableView, p *statefile.Packer) *tableWriter {
	w := &tableWriter{ctx: ctx, sn: sn, v: v, p: p, d: &v.t.decl, bits: segmentBits(v.bytes)}
	if w.d.Value.make != nil {
		w.scratch = w.d.Value.make()
	}
	return w
}

func (w *tableWriter) write() (_ stateRuns, err error) {
	defer func() {
		if err != nil && w.run != nil {
			w.run.Abort()
		}
	}()
	for i := range w.v.dirs {
		w.v.dirs[i].each(func(p *page) bool {
			if err = w.sn.check(w.ctx); err == nil {
				err = w.page(p)
			}
			return err == nil
		})
		if err != nil {
			return stateRuns{}, err
		}
	}
	return w.done, w.finish()
}

// page writes the entries of a page of the table.
func (w *tableWriter) page(p *page) error {
	v := &w.v.space
	o := w.sn.overlay(v, p)
	entries := w.sorted.sort(v.sp, w.v.chunks, p)
	w.sorted.touchKeys(v.sp, w.v.chunks, p, entries)
	for _, e := range entries {
		if w.run == nil || e.hash > w.seg.Hi {
			if err := w.next(e.hash); err != nil {
				return err
			}
		}
		key := v.sp.keyAt(w.v.chunks, p.at(e.off))
		if err := w.entry(e.hash, key, tailOf(v.sp, p, o, e)); err != nil {
			return err
		}
	}
	w.sn.leave(p)
	return nil
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
	o := w.sn.overlay(v, p)
	entries := w.subs.sort(v.sp, w.v.chunks, p)
	w.subs.touchKeys(v.sp, w.v.chunks, p, entries)
	for _, e := range entries {
		tail, written := tailOf(v.sp, p, o, e), uint32(0)
		if ml.timeOff != 0 {
			written = *(*uint32)(unsafe.Add(tail, ml.timeOff))
			if w.v.t.s.expired(written, w.d.TTL, w.sn.now) {
				continue
			}
		}
		if err := w.run.Add(hash, key, v.sp.keyAt(w.v.chunks, p.at(e.off)), w.value(tail), written); err != nil {
			return err
		}
	}
	w.sn.leave(p)
	return nil
}

// tailOf returns the tail of an entry as a snapshot sees it.
func tailOf(sp *space, p *page, o *overlay, e sortedEntry) unsafe.Pointer {
	if o != nil {
		if j := o.find(int(e.slot)); j >= 0 {
			return o.tail(j, sp.tailSize)
		}
	}
	return p.at(uintptr(e.off) + sp.keySize)
}

// sorter brings the entries of a page into the order of their hashes, equal
// ones in that of their keys.
type sorter struct {
	entries [groupSlots << 4]sortedEntry
	by      [groupSlots << 4]sortedEntry
	words   [groupSlots << 4]uint64 // keys of 8 bytes, and
	hashes  [groupSlots << 4]uint64 // their hashes
	sink    uint64                  // keeps the loads of touchKeys
}

type sortedEntry struct {
	hash uint64
	off  uintptr
	slot int
}

// sort returns the live entries of p, valid until the next call. Hashes of a
// page differ at once behind the bits they share, so a distribution by the next
// seven of them leaves little to do.
func (so *sorter) sort(sp *space, chunks [][]byte, p *page) []sortedEntry {
	var ends [129]uint8
	shift := p.depth
	n := so.gather(sp, p)
	for i := range so.entries[:n] {
		ends[sp.index(so.entries[i].hash)<<(shift&63)>>57+1]++
	}
	for i := 1; i < len(ends); i++ {
		ends[i] += ends[i-1]
	}
	for _, e := range so.entries[:n] {
		b := &ends[sp.index(e.hash)<<(shift&63)>>57]
		so.by[*b] = e
		*b++
	}
	sorted := so.by[:n]
	for i := 1; i < n; i++ {
		for j := i; j > 0 && sorted[j].hash <= sorted[j-1].hash; j-- {
			a, b := &sorted[j-1], &sorted[j]
			if a.hash == b.hash && bytes.Compare(sp.keyAt(chunks, p.at(a.off)), sp.keyAt(chunks, p.at(b.off))) < 0 {
				break
			}
			*a, *b = *b, *a
		}
	}
	return sorted
}

// gather takes the live entries of p in the order of their slots.
func (so *sorter) gather(sp *space, p *page) (n int) {
	for i := range p.groups() {
		base := pageHeader + i*sp.groupLen + groupHeader
		for m := (*group)(p.at(base-groupHeader)).ctrl & highs; m != 0; m &= m - 1 {
			j := bits.TrailingZeros64(m) >> 3
			off := base + uintptr(j)*sp.stride
			e := &so.entries[n%len(so.entries)]
			e.off, e.slot = off, int(i)*groupSlots+j
			switch {
			case sp.word:
				so.words[n%len(so.words)] = *(*uint64)(p.at(off))
			default:
				e.hash = sp.hashAt(p.at(off))
			}
			n++
		}
	}
	if sp.word {
		sp.hashWords(so.hashes[:n], so.words[:n])
		for i, h := range so.hashes[:n] {
			so.entries[i].hash = h
		}
	}
	return n
}

// touchKeys reads the first bytes of keys that are not in their slots: the waits
// for memory overlap here, and not where they are written one by one.
func (so *sorter) touchKeys(sp *space, chunks [][]byte, p *page, entries []sortedEntry) {
	if sp.key.form == inlineKey {
		return
	}
	for _, e := range entries {
		r := (*keyRef)(p.at(e.off))
		so.sink += uint64(chunks[r.chunk][r.off])
	}
}

// corrupt is what a checkpoint holds that this package did not write.
func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %w", statefile.ErrCorrupt, fmt.Errorf(format, args...))
}
