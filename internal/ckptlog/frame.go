package ckptlog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/fxamacker/cbor/v2"
)

// A record's bytes, numbers little-endian (docs/format/log.md):
//
//	 0  "SLOG"
//	 4  u16  version
//	 6  u8   kind
//	 7  u8   flags, 0
//	 8  u64  slot
//	16  [16] nonce
//	32  u32  length of the body
//	36       body: deterministic CBOR
//	    u32  crc32c of everything before
const (
	magic    = "SLOG"
	version  = 1
	headSize = 36
	tailSize = 4

	// maxBody bounds what a reader allocates for a damaged length.
	maxBody = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var encMode = func() cbor.EncMode {
	m, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err)
	}
	return m
}()

var decMode = func() cbor.DecMode {
	m, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxArrayElements:  1 << 24,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return m
}()

// Nonce tells a create from every other: a record that is read back is one's
// own only if its nonce is.
type Nonce [16]byte

// Entry is a record where it stands in the log.
type Entry struct {
	Slot   uint64
	Nonce  Nonce
	Record Record
}

// Name is the object that holds slot.
func Name(slot uint64) string { return fmt.Sprintf("%s%020d", prefix, slot) }

const prefix = "log/"

// Encode frames e.
func Encode(e Entry) []byte {
	body, err := encMode.Marshal(e.Record)
	if err != nil {
		panic(fmt.Sprintf("ckptlog: encode %s: %v", e.Record.Kind(), err)) // records hold nothing that CBOR cannot
	}
	b := make([]byte, 0, headSize+len(body)+tailSize)
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, version)
	b = append(b, byte(e.Record.Kind()), 0)
	b = binary.LittleEndian.AppendUint64(b, e.Slot)
	b = append(b, e.Nonce[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// Decode reads the record that stands at slot. Whatever is wrong with b is a
// *CorruptError that names the object; a record of a newer version is ErrVersion.
func Decode(slot uint64, b []byte) (Entry, error) {
	bad := func(off int, what string, expected, found any) (Entry, error) {
		return Entry{}, &CorruptError{Name(slot), int64(off), what, fmt.Sprint(expected), fmt.Sprint(found)}
	}
	if len(b) < headSize+tailSize {
		return bad(len(b), "size", fmt.Sprintf("at least %d bytes", headSize+tailSize), fmt.Sprintf("%d bytes", len(b)))
	}
	if string(b[:4]) != magic {
		return bad(0, "magic", fmt.Sprintf("%q", magic), fmt.Sprintf("%q", b[:4]))
	}
	// The checksum comes before all that it covers: a flipped version byte is
	// damage, not a newer program.
	n := binary.LittleEndian.Uint32(b[32:])
	if want := headSize + int64(n) + tailSize; n > maxBody || want != int64(len(b)) {
		return bad(32, "length", fmt.Sprintf("%d bytes in all, from the length in the header", want), fmt.Sprintf("%d bytes", len(b)))
	}
	end := len(b) - tailSize
	if want, got := binary.LittleEndian.Uint32(b[end:]), crc32.Checksum(b[:end], castagnoli); want != got {
		return bad(end, "checksum", fmt.Sprintf("%08x as stored", want), fmt.Sprintf("%08x over the content", got))
	}
	if v := binary.LittleEndian.Uint16(b[4:]); v != version || b[7] != 0 {
		return Entry{}, fmt.Errorf("%w: %s has version %d, flags %d; this program reads version %d, flags 0", ErrVersion, Name(slot), v, b[7], version)
	}
	if at := binary.LittleEndian.Uint64(b[8:]); at != slot {
		return bad(8, "slot", slot, at)
	}
	e := Entry{Slot: slot, Nonce: Nonce(b[16:32])}
	var err error
	if e.Record, err = decodeBody(Kind(b[6]), b[headSize:end]); err != nil {
		return bad(headSize, "body", "a "+Kind(b[6]).String()+" record", err)
	}
	return e, nil
}

func decodeBody(k Kind, b []byte) (Record, error) {
	switch k {
	case KindGenesis:
		return decodeAs[Genesis](b)
	case KindTakeover:
		return decodeAs[Takeover](b)
	case KindCheckpoint:
		return decodeAs[Checkpoint](b)
	case KindCommitted:
		return decodeAs[Committed](b)
	case KindReserve:
		return decodeAs[Reserve](b)
	case KindPin:
		return decodeAs[Pin](b)
	case KindUnpin:
		return decodeAs[Unpin](b)
	case KindRestore:
		return decodeAs[Restore](b)
	case KindResolve:
		return decodeAs[Resolve](b)
	case KindDispose:
		return decodeAs[Dispose](b)
	case KindVoid:
		return decodeAs[Void](b)
	case KindFloor:
		return decodeAs[Floor](b)
	}
	return nil, fmt.Errorf("%s is not known", k)
}

func decodeAs[R Record](b []byte) (Record, error) {
	var r R
	if err := decMode.Unmarshal(b, &r); err != nil {
		return nil, err
	}
	return r, nil
}
