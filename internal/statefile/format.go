package statefile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

const (
	version = 1

	objectMagic      = "STNCHOB1"
	objectHeaderSize = 32
	blockMagic       = "SBLK"
	blockHeaderSize  = 48
	indexEntrySize   = 40
	trailerMagic     = "SRUN"
	trailerSize      = 40

	// blockTarget is the payload at which a block ends: large enough that the
	// index stays below 0.1 %, small enough that a lazy restore waits for little.
	blockTarget = 64 << 10
	// maxField bounds one key, sub-key or value, so that a block of one entry
	// cannot overflow its 32-bit lengths.
	maxField = 64 << 20
)

// The codecs of a block. Only raw blocks are written and read by this version.
const (
	codecRaw  = 0
	codecZstd = 1
	codecS2   = 2
)

// The flags of a block say which columns it has; keys are always there.
const (
	flagSorted = 1 << iota // entries ascend by hash inside the block
	flagOps                // op bitmap: a set bit is a tombstone
	flagSubs               // sub-keys
	flagTimes              // 32-bit times
	flagValues             // values
	flagsKnown = 1<<iota - 1
)

var (
	le         = binary.LittleEndian
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendObjectHeader appends the beginning of an object. Its checksum covers
// everything else in it.
func appendObjectHeader(b []byte, id [16]byte) []byte {
	start := len(b)
	b = append(b, objectMagic...)
	b = le.AppendUint16(b, version)
	b = le.AppendUint16(b, 0)
	sum := crc32.Update(crc32.Checksum(b[start:], castagnoli), castagnoli, id[:])
	b = le.AppendUint32(b, sum)
	return append(b, id[:]...)
}

// checkObjectHeader compares what an object begins with against its id.
func checkObjectHeader(at place, b []byte, id [16]byte) error {
	if found := string(b[:8]); found != objectMagic {
		return at.corrupt("object magic", objectMagic, fmt.Sprintf("%q", found))
	}
	sum := crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:32])
	if found := le.Uint32(b[12:]); found != sum {
		return at.corrupt("object header", crc(sum), crc(found))
	}
	if v := le.Uint16(b[8:]); v != version {
		return at.unsupported(fmt.Sprintf("object version %d", v))
	}
	if f := le.Uint16(b[10:]); f != 0 {
		return at.unsupported(fmt.Sprintf("object flags %#x", f))
	}
	if found := [16]byte(b[16:32]); found != id {
		return at.corrupt("object id", objectID(id), objectID(found))
	}
	return nil
}

// blockHeader is the fixed part in front of each block.
type blockHeader struct {
	version   uint8
	codec     uint8
	kind      checkpoint.RunKind
	flags     uint8
	entries   uint32
	rawLen    uint32
	storedLen uint32
	minHash   uint64
	maxHash   uint64
	rawCRC    uint32
	blockNo   uint32
	crc       uint32 // over object id, header before this field, stored payload
}

// put writes all but the checksum, which covers these bytes.
func (h *blockHeader) put(b []byte) {
	_ = b[blockHeaderSize-1]
	copy(b, blockMagic)
	b[4], b[5], b[6], b[7] = h.version, h.codec, uint8(h.kind), h.flags
	le.PutUint32(b[8:], h.entries)
	le.PutUint32(b[12:], h.rawLen)
	le.PutUint32(b[16:], h.storedLen)
	le.PutUint64(b[20:], h.minHash)
	le.PutUint64(b[28:], h.maxHash)
	le.PutUint32(b[36:], h.rawCRC)
	le.PutUint32(b[40:], h.blockNo)
}

func parseBlockHeader(b []byte) blockHeader {
	_ = b[blockHeaderSize-1]
	return blockHeader{
		version: b[4], codec: b[5], kind: checkpoint.RunKind(b[6]), flags: b[7],
		entries: le.Uint32(b[8:]), rawLen: le.Uint32(b[12:]), storedLen: le.Uint32(b[16:]),
		minHash: le.Uint64(b[20:]), maxHash: le.Uint64(b[28:]),
		rawCRC: le.Uint32(b[36:]), blockNo: le.Uint32(b[40:]), crc: le.Uint32(b[44:]),
	}
}

// blockCRC is the checksum of a block b (header and stored payload). It begins
// with the object's id, so that a block of another object is never accepted.
func blockCRC(id [16]byte, b []byte) uint32 {
	sum := crc32.Checksum(id[:], castagnoli)
	sum = crc32.Update(sum, castagnoli, b[:blockHeaderSize-4])
	return crc32.Update(sum, castagnoli, b[blockHeaderSize:])
}

// BlockInfo is one block as the index of its run has it.
type BlockInfo struct {
	Range    checkpoint.HashRange // of the hashes in it
	Offset   int64                // from the start of the run
	Stored   int                  // bytes of payload as stored
	Entries  int
	CRC      uint32
	MinTimer uint32 // lower bound of the times in it, seconds; runs of timers
}

// size is what the block takes in the object.
func (i BlockInfo) size() int64 { return blockHeaderSize + int64(i.Stored) }

func (i BlockInfo) append(b []byte) []byte {
	b = le.AppendUint64(b, i.Range.Lo)
	b = le.AppendUint64(b, i.Range.Hi)
	b = le.AppendUint64(b, uint64(i.Offset))
	b = le.AppendUint32(b, uint32(i.Stored))
	b = le.AppendUint32(b, uint32(i.Entries))
	b = le.AppendUint32(b, i.CRC)
	return le.AppendUint32(b, i.MinTimer)
}

func parseBlockInfo(b []byte) BlockInfo {
	return BlockInfo{
		Range:  checkpoint.HashRange{Lo: le.Uint64(b), Hi: le.Uint64(b[8:])},
		Offset: int64(le.Uint64(b[16:])), Stored: int(le.Uint32(b[24:])),
		Entries: int(le.Uint32(b[28:])), CRC: le.Uint32(b[32:]), MinTimer: le.Uint32(b[36:]),
	}
}

// appendTrailer appends the end of the run that ref describes. Everything in it
// stands in the reference too; it makes an object readable without a manifest.
func appendTrailer(b []byte, ref *checkpoint.Ref) []byte {
	b = le.AppendUint64(b, uint64(ref.IndexOff))
	b = le.AppendUint32(b, uint32(ref.Blocks*indexEntrySize))
	b = le.AppendUint32(b, uint32(ref.Blocks))
	b = le.AppendUint64(b, uint64(ref.Entries))
	b = le.AppendUint64(b, uint64(ref.Deletes))
	b = le.AppendUint32(b, ref.IndexCRC)
	return append(b, trailerMagic...)
}

// TimerSeconds is the time of a timer as blocks and references hold it, from
// Unix nanoseconds: whole seconds, never later than the timer.
func TimerSeconds(nanos int64) uint32 {
	s := nanos / 1e9
	return uint32(min(max(s, 0), 1<<32-1))
}
