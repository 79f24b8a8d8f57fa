package statefile

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// RunConfig describes a run. A width is that of each key, sub-key or value in
// bytes, or Variable, or (not for keys) Absent.
type RunConfig struct {
	Kind     checkpoint.RunKind
	Range    checkpoint.HashRange // all hashes lie in it; not for TableRun
	KeyWidth int
	SubWidth int
	ValWidth int
	Times    bool // entries have a time: when they were written, when a timer fires
	Deletes  bool // there may be tombstones; always so in a DeltaRun, never in a BaseRun or TableRun
}

func (c *RunConfig) check() error {
	switch c.Kind {
	case checkpoint.BaseRun, checkpoint.TableRun:
		if c.Deletes {
			return fmt.Errorf("a run of kind %v has no tombstones", c.Kind)
		}
	case checkpoint.DeltaRun:
		c.Deletes = true
	case checkpoint.ListRun, checkpoint.TimerRun:
	default:
		return fmt.Errorf("no such kind of run: %v", c.Kind)
	}
	if c.KeyWidth < 0 || c.KeyWidth > maxField || c.SubWidth < Absent || c.SubWidth > maxField || c.ValWidth < Absent || c.ValWidth > maxField {
		return fmt.Errorf("width of keys, sub-keys or values: %d, %d, %d", c.KeyWidth, c.SubWidth, c.ValWidth)
	}
	if c.Kind == checkpoint.TableRun {
		c.Range = checkpoint.HashRange{Hi: math.MaxUint64}
	}
	return nil
}

// RunWriter writes one run. One goroutine uses it, and ends it by Finish or
// Abort. Its first error stays: later calls return it.
type RunWriter struct {
	p     *Packer
	c     RunConfig
	block *columns
	last  uint64 // hash of the last entry
	o     *object
	start int64 // of the run in the object
	ref   checkpoint.Ref
	index []byte
	ended bool
	torn  bool // a write failed: what is in the object is unknown
	err   error
}

// NewRun begins a run. A wrong configuration is returned by the first Add.
func (p *Packer) NewRun(c RunConfig) *RunWriter {
	w := &RunWriter{p: p, c: c}
	if err := w.c.check(); err != nil {
		w.err = fmt.Errorf("begin run: %w", err)
		return w
	}
	w.block = newColumns(&w.c)
	w.last = w.c.Range.Lo
	w.ref = checkpoint.Ref{Kind: w.c.Kind, Clip: w.c.Range, MinTimer: math.MaxUint32}
	return w
}

// Add adds an entry. Hashes ascend, equal ones may follow each other; in a
// TableRun the hash is ignored, for its entries are numbered. What is of
// variable width may be empty; what is absent must be. Nothing of the slices is
// kept.
func (w *RunWriter) Add(hash uint64, key, sub, val []byte, t uint32) error {
	return w.add(hash, key, sub, val, t, false)
}

// Delete adds a tombstone.
func (w *RunWriter) Delete(hash uint64, key, sub []byte) error {
	if w.err == nil && !w.c.Deletes {
		w.err = fmt.Errorf("add to run: a tombstone in a run of kind %v", w.c.Kind)
	}
	return w.add(hash, key, sub, nil, 0, true)
}

func (w *RunWriter) add(hash uint64, key, sub, val []byte, t uint32, deleted bool) error {
	if w.c.Kind == checkpoint.TableRun {
		hash = uint64(w.ref.Entries)
	}
	if w.err != nil || hash < w.last || hash > w.c.Range.Hi || w.ended ||
		!fits(w.c.KeyWidth, key) || !fits(w.c.SubWidth, sub) || !(deleted || fits(w.c.ValWidth, val)) {
		return w.refuse(hash, key, sub, val)
	}
	b := w.block
	size := len(key) + len(sub) + len(val)
	if b.raw+b.fixed+size > blockTarget && b.n > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	b.add(hash, key, sub, val, t, deleted)
	w.last = hash
	w.ref.Entries++
	w.ref.Bytes += int64(size)
	if deleted {
		w.ref.Deletes++
	}
	return nil
}

// fits says whether b may stand in a column of the width.
func fits(width int, b []byte) bool {
	switch {
	case width > 0:
		return len(b) == width
	case width == Variable:
		return len(b) <= maxField
	}
	return len(b) == 0
}

// refuse says why an entry cannot be added. The run cannot go on: the caller's
// order or layout is not what it said.
func (w *RunWriter) refuse(hash uint64, key, sub, val []byte) error {
	switch {
	case w.err != nil:
	case w.ended:
		w.err = errors.New("add to run: the run has ended")
	case hash < w.last && w.ref.Entries > 0:
		w.err = fmt.Errorf("add to run: hash %016x after %016x: entries must ascend", hash, w.last)
	case !w.c.Range.Contains(hash):
		w.err = fmt.Errorf("add to run: hash %016x is outside %016x-%016x", hash, w.c.Range.Lo, w.c.Range.Hi)
	default:
		w.err = fmt.Errorf("add to run: key of %d, sub-key of %d, value of %d bytes, but the widths are %d, %d, %d (0: up to %d, -1: none)",
			len(key), len(sub), len(val), w.c.KeyWidth, w.c.SubWidth, w.c.ValWidth, maxField)
	}
	return w.err
}

// flush writes the full block: the run is too large to be inline.
func (w *RunWriter) flush() error {
	if w.o == nil {
		if w.err = w.takeObject(false); w.err != nil {
			return w.err
		}
	}
	return w.write(w.encodeBlock(w.o.id))
}

func (w *RunWriter) write(b []byte) error {
	w.err = w.p.write(w.o, b)
	w.torn = w.err != nil
	return w.err
}

func (w *RunWriter) takeObject(whole bool) error {
	o, err := w.p.take(whole)
	if err != nil {
		return err
	}
	w.o, w.start = o, o.size
	return nil
}

// encodeBlock encodes the block that is being filled, notes it in the index and
// begins the next one. The bytes are valid until that is encoded.
func (w *RunWriter) encodeBlock(id [16]byte) []byte {
	b := w.block
	h := b.encode(w.c.Kind, id, w.ref.Blocks)
	info := BlockInfo{
		Range:  checkpoint.HashRange{Lo: h.minHash, Hi: h.maxHash},
		Offset: w.ref.IndexOff, Stored: int(h.storedLen), Entries: int(h.entries), CRC: h.crc,
	}
	if w.c.Kind == checkpoint.TimerRun {
		info.MinTimer = b.minTimer
		w.ref.MinTimer = min(w.ref.MinTimer, int64(b.minTimer))
	}
	w.index = info.append(w.index)
	w.ref.Blocks++
	w.ref.IndexOff += info.size()
	b.reset()
	return b.out
}

// Finish ends the run. Its reference is valid when it is durable: see
// Pending.WaitDurable.
func (w *RunWriter) Finish() (*Pending, error) {
	if w.err != nil || w.ended {
		if w.err == nil {
			w.err = errors.New("finish run: the run has ended")
		}
		w.end()
		return nil, w.err
	}
	whole := w.o == nil
	if whole && w.p.reserveInline(w.smallSize()) {
		w.ref.Object = -1
		w.ref.Inline = w.appendTail(nil, [16]byte{})
		w.ref.Length = int64(len(w.ref.Inline))
		w.end()
		return &Pending{p: w.p.packing, ref: w.ref}, nil
	}
	if whole {
		w.err = w.takeObject(true)
	}
	if w.err == nil {
		tail := w.appendTail(nil, w.o.id)
		w.ref.Length = w.o.size - w.start + int64(len(tail))
		w.ref.Offset = w.start
		w.write(tail)
	}
	if w.err != nil {
		w.end()
		return nil, w.err
	}
	o := w.o
	w.o = nil
	w.end()
	w.p.release(o, true)
	return &Pending{p: w.p.packing, o: o, ref: w.ref}, nil
}

// smallSize is the size of a run that has at most the block being filled.
func (w *RunWriter) smallSize() int {
	if w.block.n == 0 {
		return trailerSize
	}
	return blockHeaderSize + w.block.payloadSize() + indexEntrySize + trailerSize
}

// appendTail appends the last block, the index and the trailer.
func (w *RunWriter) appendTail(b []byte, id [16]byte) []byte {
	if w.block.n > 0 {
		b = append(b, w.encodeBlock(id)...)
	}
	w.ref.IndexCRC = crc32.Checksum(w.index, castagnoli)
	if w.c.Kind != checkpoint.TimerRun || w.ref.Entries == 0 {
		w.ref.MinTimer = 0
	}
	b = append(b, w.index...)
	return appendTrailer(b, &w.ref)
}

// Abort gives the run up. After Finish it does nothing.
func (w *RunWriter) Abort() {
	if w.err == nil && !w.ended {
		w.err = errors.New("statefile: run was aborted")
	}
	w.end()
}

// end frees what the run holds. The other runs of an object that it still holds
// are lost only if writing to it failed.
func (w *RunWriter) end() {
	w.ended = true
	if w.block != nil {
		w.block.free()
		w.block = nil
	}
	if w.o == nil {
		return
	}
	if w.torn {
		w.p.drop(w.o, w.err)
	} else {
		w.p.release(w.o, false)
	}
	w.o = nil
}
