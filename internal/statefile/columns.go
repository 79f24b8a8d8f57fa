package statefile

import (
	"hash/crc32"
	"slices"
	"sync"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// The widths of a column that is not of fixed width.
const (
	Variable = 0
	Absent   = -1
)

// column is one column of a block being filled: values of a fixed width one
// after another, or values of any length and where each of them ends.
type column struct {
	width int
	data  []byte
	ends  []byte // little-endian uint32; width Variable only
}

func (c *column) reset(width int) {
	c.width, c.data, c.ends = width, c.data[:0], c.ends[:0]
}

func (c *column) add(b []byte) {
	c.data = append(c.data, b...)
	if c.width == Variable {
		c.ends = le.AppendUint32(c.ends, uint32(len(c.data)))
	}
}

// addZero adds the value of a tombstone, which nobody reads.
func (c *column) addZero() {
	switch {
	case c.width > 0:
		n := len(c.data)
		c.data = slices.Grow(c.data, c.width)[:n+c.width]
		clear(c.data[n:])
	case c.width == Variable:
		c.ends = le.AppendUint32(c.ends, uint32(len(c.data)))
	}
}

// size is what append will append.
func (c *column) size() int {
	if c.width == Absent {
		return 0
	}
	return 4 + len(c.ends) + len(c.data)
}

func (c *column) append(b []byte) []byte {
	if c.width == Absent {
		return b
	}
	b = le.AppendUint32(b, uint32(c.width))
	b = append(b, c.ends...)
	return append(b, c.data...)
}

// columns is a block being filled.
type columns struct {
	ops   []byte
	keys  column
	subs  column
	times []byte
	vals  column

	flags    uint8
	n        int
	plain    bool // there are keys and values of fixed width, and nothing else
	raw      int  // payload bytes of the entries, without the few of the columns
	fixed    int  // payload bytes of each entry besides key, sub-key and value
	min, max uint64
	minTimer uint32

	out []byte // the block, encoded
}

// columnsPool keeps the buffers of runs that ended: a subtask writes many runs
// a checkpoint, each would otherwise grow its own.
var columnsPool = sync.Pool{New: func() any { return new(columns) }}

func newColumns(c *RunConfig) *columns {
	b := columnsPool.Get().(*columns)
	b.flags, b.fixed = flagSorted, 0
	b.keys.width, b.subs.width, b.vals.width = c.KeyWidth, c.SubWidth, c.ValWidth
	if c.Deletes {
		b.flags |= flagOps
	}
	if c.SubWidth != Absent {
		b.flags |= flagSubs
	}
	if c.Times {
		b.flags |= flagTimes
		b.fixed += 4
	}
	if c.ValWidth != Absent {
		b.flags |= flagValues
	}
	for _, col := range []*column{&b.keys, &b.subs, &b.vals} {
		if col.width == Variable {
			b.fixed += 4
		}
	}
	b.plain = b.flags == flagSorted|flagValues && c.KeyWidth > 0 && c.ValWidth > 0
	b.reset()
	return b
}

// free gives the buffers back, unless a huge value made them worth dropping.
func (b *columns) free() {
	if cap(b.out)+cap(b.keys.data)+cap(b.subs.data)+cap(b.vals.data) <= 16*blockTarget {
		columnsPool.Put(b)
	}
}

// reset empties the block.
func (b *columns) reset() {
	b.ops, b.times = b.ops[:0], b.times[:0]
	b.keys.reset(b.keys.width)
	b.subs.reset(b.subs.width)
	b.vals.reset(b.vals.width)
	b.n, b.raw = 0, 0
	b.minTimer = 1<<32 - 1
}

// add adds an entry that fits the columns.
func (b *columns) add(hash uint64, key, sub, val []byte, t uint32, deleted bool) {
	if b.n == 0 {
		b.min = hash
	}
	b.max = hash
	if !deleted {
		b.minTimer = min(b.minTimer, t)
	}
	b.raw += b.fixed + len(key) + len(sub) + len(val)
	if b.plain {
		b.n++
		b.keys.data, b.vals.data = appendShort(b.keys.data, key), appendShort(b.vals.data, val)
		return
	}
	if b.flags&flagOps != 0 {
		if b.n&7 == 0 {
			b.ops = append(b.ops, 0)
		}
		if deleted {
			b.ops[b.n>>3] |= 1 << (b.n & 7)
		}
	}
	b.n++
	b.keys.add(key)
	if b.flags&flagSubs != 0 {
		b.subs.add(sub)
	}
	if b.flags&flagTimes != 0 {
		b.times = le.AppendUint32(b.times, t)
	}
	if b.flags&flagValues != 0 {
		if deleted {
			b.vals.addZero()
		} else {
			b.vals.add(val)
		}
	}
}

// appendShort is append for what is mostly a number: to copy that by a call
// costs more than all else that is done for an entry.
func appendShort(dst, b []byte) []byte {
	if len(b) == 8 {
		return le.AppendUint64(dst, le.Uint64(b))
	}
	return append(dst, b...)
}

// payloadSize is the exact length of the payload.
func (b *columns) payloadSize() int {
	return len(b.ops) + b.keys.size() + b.subs.size() + len(b.times) + b.vals.size()
}

// encode encodes the block into b.out, in one piece so that a store sees one
// write a block.
func (b *columns) encode(kind checkpoint.RunKind, id [16]byte, no int) blockHeader {
	out := slices.Grow(b.out[:0], blockHeaderSize+b.payloadSize())[:blockHeaderSize]
	out = append(out, b.ops...)
	out = b.keys.append(out)
	out = b.subs.append(out)
	out = append(out, b.times...)
	out = b.vals.append(out)
	b.out = out

	payload := out[blockHeaderSize:]
	h := blockHeader{
		version: version, codec: codecRaw, kind: kind, flags: b.flags,
		entries: uint32(b.n), rawLen: uint32(len(payload)), storedLen: uint32(len(payload)),
		minHash: b.min, maxHash: b.max,
		rawCRC: crc32.Checksum(payload, castagnoli), blockNo: uint32(no),
	}
	h.put(out)
	h.crc = blockCRC(id, out)
	le.PutUint32(out[blockHeaderSize-4:], h.crc)
	return h
}
