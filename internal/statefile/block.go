package statefile

import (
	"fmt"
	"hash/crc32"
	"iter"
	"math/bits"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Entry is one entry of a block. Its slices alias what was read and stay valid;
// they must not be written to.
type Entry struct {
	Hash    uint64 // as Run.All computed it; the ordinal in runs of tables
	Key     []byte
	Sub     []byte // nil: the run has no sub-keys
	Value   []byte // nil: a tombstone, or the run has no values
	Time    uint32 // 0: the run has no times
	Deleted bool
}

// Block is a block that was read and checked.
type Block struct {
	Info BlockInfo

	ops   []byte
	keys  cells
	subs  cells
	times []byte
	vals  cells
	n     int
	kind  checkpoint.RunKind
}

// cells is a column as read.
type cells struct {
	width int // Absent: there is none
	data  []byte
	ends  []byte
}

// at returns value i. decodeColumn made sure that the ends ascend.
func (c *cells) at(i int) []byte {
	switch {
	case c.width > 0:
		return c.data[i*c.width : (i+1)*c.width : (i+1)*c.width]
	case c.width == Absent:
		return nil
	}
	start := uint32(0)
	if i > 0 {
		start = le.Uint32(c.ends[4*i-4:])
	}
	end := le.Uint32(c.ends[4*i:])
	return c.data[start:end:end]
}

// Len is the number of entries.
func (b *Block) Len() int { return b.n }

// Deletes is the number of tombstones.
func (b *Block) Deletes() int {
	n := 0
	for _, o := range b.ops {
		n += bits.OnesCount8(o)
	}
	return n
}

// Entry returns entry i. Its hash is set in runs of tables only: blocks do not
// keep the hash of a key.
func (b *Block) Entry(i int) Entry {
	e := Entry{Key: b.keys.at(i), Sub: b.subs.at(i)}
	if b.kind == checkpoint.TableRun {
		e.Hash = b.Info.Range.Lo + uint64(i)
	}
	if b.times != nil {
		e.Time = le.Uint32(b.times[4*i:])
	}
	if b.ops != nil && b.ops[i>>3]>>(i&7)&1 != 0 {
		e.Deleted = true
		return e
	}
	e.Value = b.vals.at(i)
	return e
}

// Entries iterates over the entries in the order they were written.
func (b *Block) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := range b.n {
			if !yield(b.Entry(i)) {
				return
			}
		}
	}
}

// decodeBlock checks b, which must be block no of a run of the kind in the
// object with the id, as info says, and decodes its columns without copying.
func decodeBlock(at place, id [16]byte, kind checkpoint.RunKind, info BlockInfo, b []byte) (*Block, error) {
	if int64(len(b)) != info.size() {
		return nil, at.corrupt("block length", info.size(), len(b))
	}
	if string(b[:4]) != blockMagic {
		return nil, at.corrupt("block magic", blockMagic, fmt.Sprintf("%q", b[:4]))
	}
	h := parseBlockHeader(b)
	if sum := blockCRC(id, b); sum != h.crc {
		return nil, at.corrupt("block checksum", crc(h.crc), crc(sum))
	}
	if h.crc != info.CRC {
		return nil, at.corrupt("block checksum in the index", crc(info.CRC), crc(h.crc))
	}
	if err := h.check(at, kind, info); err != nil {
		return nil, err
	}
	payload := b[blockHeaderSize:]
	if sum := crc32.Checksum(payload, castagnoli); sum != h.rawCRC {
		return nil, at.corrupt("payload checksum", crc(h.rawCRC), crc(sum))
	}
	blk := &Block{Info: info, n: info.Entries, kind: kind}
	if err := blk.decodeColumns(at, h.flags, payload); err != nil {
		return nil, err
	}
	return blk, nil
}

// check compares the header with what the index says of the block.
func (h *blockHeader) check(at place, kind checkpoint.RunKind, info BlockInfo) error {
	if h.version != version {
		return at.unsupported(fmt.Sprintf("block version %d", h.version))
	}
	switch h.codec {
	case codecRaw:
	case codecZstd:
		return at.unsupported("block is compressed with zstd (codec 1)")
	case codecS2:
		return at.unsupported("block is compressed with s2 (codec 2)")
	default:
		return at.unsupported(fmt.Sprintf("block codec %d", h.codec))
	}
	if h.flags&^flagsKnown != 0 {
		return at.unsupported(fmt.Sprintf("block flags %#x", h.flags))
	}
	switch {
	case h.kind != kind:
		return at.corrupt("kind of block", kind, h.kind)
	case int(h.blockNo) != at.block:
		return at.corrupt("block number", at.block, h.blockNo)
	case int(h.entries) != info.Entries:
		return at.corrupt("entries of the block", info.Entries, h.entries)
	case int(h.storedLen) != info.Stored:
		return at.corrupt("stored length", info.Stored, h.storedLen)
	case h.rawLen != h.storedLen:
		return at.corrupt("raw length of an uncompressed block", h.storedLen, h.rawLen)
	case h.minHash != info.Range.Lo || h.maxHash != info.Range.Hi:
		return at.corrupt("hashes of the block", span{info.Range.Lo, info.Range.Hi}, span{h.minHash, h.maxHash})
	case (h.flags&flagOps != 0) != (kind == checkpoint.DeltaRun) && kind != checkpoint.ListRun && kind != checkpoint.TimerRun:
		return at.corrupt("op bitmap", kind == checkpoint.DeltaRun, h.flags&flagOps != 0)
	}
	return nil
}

// decodeColumns cuts the payload into the columns that the flags name. It
// trusts no length in it.
func (b *Block) decodeColumns(at place, flags uint8, payload []byte) error {
	d := columnDecoder{at: at, n: uint64(b.n), rest: payload}
	if flags&flagOps != 0 {
		b.ops = d.bytes("op bitmap", (d.n+7)/8)
	}
	b.keys = d.column("keys", true)
	b.subs = d.column("sub-keys", flags&flagSubs != 0)
	if flags&flagTimes != 0 {
		b.times = d.bytes("times", 4*d.n)
	}
	b.vals = d.column("values", flags&flagValues != 0)
	if d.err == nil && len(d.rest) != 0 {
		d.err = at.corrupt("payload length", len(payload)-len(d.rest), len(payload))
	}
	if d.err == nil && b.n&7 != 0 && b.ops != nil && b.ops[b.n>>3]>>(b.n&7) != 0 {
		d.err = at.corrupt("op bitmap", "no bit behind the last entry", "one")
	}
	return d.err
}

// columnDecoder cuts columns of n values off rest. The first error stays.
type columnDecoder struct {
	at   place
	n    uint64
	rest []byte
	err  error
}

func (d *columnDecoder) bytes(what string, n uint64) []byte {
	if d.err != nil {
		return nil
	}
	if n > uint64(len(d.rest)) {
		d.err = d.at.corrupt("length of the "+what, n, len(d.rest))
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

func (d *columnDecoder) column(what string, present bool) cells {
	if !present {
		return cells{width: Absent}
	}
	word := d.bytes(what, 4)
	if d.err != nil {
		return cells{width: Absent}
	}
	// Neither product overflows: n and width are 32-bit numbers.
	if width := uint64(le.Uint32(word)); width > 0 {
		if width > maxField {
			d.err = d.at.corrupt("width of the "+what, fmt.Sprintf("at most %d", maxField), width)
			return cells{width: Absent}
		}
		return cells{width: int(width), data: d.bytes(what, d.n*width)}
	}
	c := cells{width: Variable, ends: d.bytes(what, 4*d.n)}
	end := uint32(0)
	for i := 0; i < len(c.ends); i += 4 {
		next := le.Uint32(c.ends[i:])
		if next < end {
			d.err = d.at.corrupt("ends of the "+what, "ascending", next)
			return cells{width: Absent}
		}
		end = next
	}
	c.data = d.bytes(what, uint64(end))
	return c
}
