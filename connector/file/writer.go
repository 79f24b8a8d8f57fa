package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

// flushSize is how much is encoded in memory before it goes to the file.
const flushSize = 256 << 10

// writer writes the segments of one subtask, one at a time.
type writer[T any] struct {
	disk  Disk
	dir   string // of staged segments
	i     connector.Instance
	codec codec.Codec[T]
	ext   string

	buf  []byte  // encoded, not yet in the file
	f    Segment // nil: no record in this epoch yet
	name string  // of f
	n    int     // segments begun
	size int64   // in f
	crc  uint32  // of what is in f
}

// Write implements connector.Writer.
func (w *writer[T]) Write(_ context.Context, b connector.Batch[T]) error {
	for _, v := range b.Values {
		at := len(w.buf)
		var err error
		if w.buf, err = w.codec.Append(w.buf, v); err != nil {
			w.buf = w.buf[:at]
			return fmt.Errorf("encode record %+v: %w", v, err)
		}
		if bytes.IndexByte(w.buf[at:], '\n') >= 0 {
			w.buf = w.buf[:at]
			return fmt.Errorf("encode record %+v: its encoding has a newline in it, so it cannot be a line", v)
		}
		w.buf = append(w.buf, '\n')
		if len(w.buf) >= flushSize {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes what is encoded to the segment's file.
func (w *writer[T]) flush() error {
	if w.f == nil {
		w.n++
		name := filepath.Join(w.dir, openName(w.i, w.n))
		f, err := w.disk.Create(name)
		if err != nil {
			return fmt.Errorf("begin segment: %w", err)
		}
		w.f, w.name, w.size, w.crc = f, name, 0, 0
	}
	if _, err := w.f.Write(w.buf); err != nil {
		return fmt.Errorf("write segment: %w", err)
	}
	w.size += int64(len(w.buf))
	w.crc = crc32.Update(w.crc, castagnoli, w.buf)
	w.buf = w.buf[:0]
	return nil
}

// Prepare makes the segment durable under its name in the staging directory.
//
// The file is synced before it gets that name, and the directory before Prepare
// returns: a checkpoint that names the segment is written only after that.
func (w *writer[T]) Prepare(_ context.Context, id connector.CheckpointID) ([]connector.Committable, error) {
	if w.f == nil && len(w.buf) == 0 {
		return nil, nil
	}
	if err := w.flush(); err != nil {
		return nil, err
	}
	name := segmentName(w.i, id, w.ext)
	to := filepath.Join(w.dir, name)
	if err := w.f.Sync(); err != nil {
		return nil, fmt.Errorf("sync segment: %w", err)
	}
	err := w.f.Close()
	w.f = nil
	if err != nil {
		return nil, fmt.Errorf("close segment: %w", err)
	}
	if _, err := w.disk.Stat(to); err == nil {
		return nil, fmt.Errorf("stage segment: %s exists: checkpoint %d was prepared before in this attempt", to, id)
	}
	if err := w.disk.Rename(w.name, to); err != nil {
		return nil, fmt.Errorf("stage segment: %w", err)
	}
	if err := w.disk.SyncDir(w.dir); err != nil {
		return nil, fmt.Errorf("stage segment: %w", err)
	}
	data, err := cbor.Marshal(staged{Size: w.size, CRC: w.crc})
	if err != nil {
		return nil, fmt.Errorf("encode committable: %w", err)
	}
	return []connector.Committable{{ID: name, Data: data}}, nil
}

// Close removes the segment that was not prepared. It may be gone already: the
// next attempt removes what it finds.
func (w *writer[T]) Close() error {
	w.buf = nil
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	if rm := w.disk.Remove(w.name); !errors.Is(rm, fs.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}
