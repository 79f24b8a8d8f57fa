package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/staunchdev/staunch/connector"
)

// Input that was there and is not: all of these are connector.ErrPermanent, as no
// restart brings it back. Each comes with the name of the file and what is gone
// of it.
var (
	// ErrTruncated says that a file is shorter than the position to read it from.
	ErrTruncated = connector.Permanent(errors.New("file: truncated"))
	// ErrReplaced says that what stands before the position is not what was read.
	ErrReplaced = connector.Permanent(errors.New("file: replaced"))
	// ErrDeleted says that a file that was found before is not there any more.
	ErrDeleted = connector.Permanent(errors.New("file: deleted"))
)

// position is a connector.Offset of this source: N is the byte offset of the
// next line, State is a version byte, the number of lines before it, and the
// CRC-32C of the up to 4 KiB before it.
//
// A checksum and not an inode: it survives a copy of the file to another
// machine, and tells a file that was written anew in place.
type position struct {
	offset int64
	line   int64 // -1: unknown
	crc    uint32
	check  bool // crc is known
}

const positionVersion = 1

func (p position) encode() connector.Offset {
	state := make([]byte, 0, 1+binary.MaxVarintLen64+4)
	state = append(state, positionVersion)
	state = binary.AppendVarint(state, p.line)
	state = binary.LittleEndian.AppendUint32(state, p.crc)
	return connector.Offset{N: p.offset, State: state}
}

// decodePosition reads an offset. One without State is taken as it is, and
// nothing is checked: it was written by hand.
func decodePosition(o connector.Offset) (position, error) {
	switch {
	case o.N < 0:
		return position{}, fmt.Errorf("file: negative offset %d", o.N)
	case o.N == 0:
		return position{}, nil
	case len(o.State) == 0:
		return position{offset: o.N, line: -1}, nil
	case o.State[0] != positionVersion:
		return position{}, fmt.Errorf("file: position of version %d, this build reads %d", o.State[0], positionVersion)
	}
	line, n := binary.Varint(o.State[1:])
	if n <= 0 || len(o.State) != 1+n+4 {
		return position{}, fmt.Errorf("file: damaged position % x", o.State)
	}
	return position{offset: o.N, line: line, crc: binary.LittleEndian.Uint32(o.State[1+n:]), check: true}, nil
}

// verify reads the bytes before p and compares them with p's checksum. It
// returns them.
func verify(f *os.File, p position) ([]byte, error) {
	if p.offset == 0 {
		return nil, nil
	}
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if fi.Size() < p.offset {
		return nil, truncated(f.Name(), p.offset, fi.Size())
	}
	tail := make([]byte, min(p.offset, tailSize))
	if _, err := f.ReadAt(tail, p.offset-int64(len(tail))); err != nil {
		if err == io.EOF { // cut between the two calls
			return nil, truncated(f.Name(), p.offset, fi.Size())
		}
		return nil, err
	}
	if found := crc32.Checksum(tail, castagnoli); p.check && found != p.crc {
		return nil, fmt.Errorf("%s: the %d bytes before offset %d are not those that were read (crc32c %08x, was %08x): %w",
			f.Name(), len(tail), p.offset, found, p.crc, ErrReplaced)
	}
	return tail, nil
}

func truncated(name string, offset, size int64) error {
	return fmt.Errorf("%s: read up to offset %d, but the file has only %d bytes: %d bytes are gone: %w",
		name, offset, size, offset-size, ErrTruncated)
}

func directory(name string) error {
	return fmt.Errorf("%s: is a directory, and was a file when it was found: %w", name, ErrReplaced)
}

// deleted makes that a file is not there an ErrDeleted: it was, when it was found.
func deleted(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w, and what was not read of it is gone: %w", err, ErrDeleted)
	}
	return err
}
