package statefile

import (
	"encoding/hex"
	"errors"
	"fmt"
)

var (
	// ErrCorrupt says that what was read is not what was written: damage, which
	// no retry heals. The error that wraps it is a *CorruptError.
	ErrCorrupt = errors.New("statefile: damaged state")
	// ErrUnsupported says that a block is whole but of a version or codec that
	// this binary does not read.
	ErrUnsupported = errors.New("statefile: unsupported state format")
)

// CorruptError says where damage is and how it was seen.
type CorruptError struct {
	Object   string // name in the store, or "inline run"
	Offset   int64  // in the object, of the region that is damaged
	Block    int    // number in its run; -1: not a block
	What     string // what was compared
	Expected string
	Found    string
}

func (e *CorruptError) Error() string {
	at := place{e.Object, e.Offset, e.Block}
	return fmt.Sprintf("statefile: damaged state: %s: %s: expected %s, found %s", at, e.What, e.Expected, e.Found)
}

// Unwrap makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// place is where a region was read from; it makes the errors about it.
type place struct {
	object string
	offset int64
	block  int
}

func (p place) corrupt(what string, expected, found any) error {
	return &CorruptError{
		Object: p.object, Offset: p.offset, Block: p.block,
		What: what, Expected: fmt.Sprint(expected), Found: fmt.Sprint(found),
	}
}

func (p place) unsupported(what string) error {
	return fmt.Errorf("%s: %s: %w", p, what, ErrUnsupported)
}

func (p place) String() string {
	if p.block < 0 {
		return fmt.Sprintf("%s: offset %d", p.object, p.offset)
	}
	return fmt.Sprintf("%s: block %d at offset %d", p.object, p.block, p.offset)
}

// crc prints checksums the way tools do.
type crc uint32

func (c crc) String() string { return fmt.Sprintf("crc32c %08x", uint32(c)) }

// span prints an interval of hashes.
type span struct{ lo, hi uint64 }

func (s span) String() string { return fmt.Sprintf("hashes %016x-%016x", s.lo, s.hi) }

// objectID prints the id of an object.
type objectID [16]byte

func (id objectID) String() string { return "id " + hex.EncodeToString(id[:]) }
