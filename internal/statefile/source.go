package statefile

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// source is where the bytes of one run come from.
type source struct {
	store  storage.Store // nil: inline
	object checkpoint.Object
	offset int64 // of the run
	length int64
	inline []byte
	id     [16]byte
}

func newSource(store storage.Store, ref checkpoint.Ref, objects []checkpoint.Object) (source, error) {
	if ref.Object == -1 {
		s := source{object: checkpoint.Object{Name: "inline run"}, length: ref.Length, inline: ref.Inline}
		if int64(len(ref.Inline)) != ref.Length {
			return s, s.place(0, -1).corrupt("length of the run", ref.Length, len(ref.Inline))
		}
		return s, nil
	}
	if ref.Object < 0 || ref.Object >= len(objects) {
		s := source{object: checkpoint.Object{Name: fmt.Sprintf("object number %d", ref.Object)}, offset: ref.Offset}
		return s, s.place(0, -1).corrupt("number of the object in a reference", fmt.Sprintf("below %d", len(objects)), ref.Object)
	}
	o := objects[ref.Object]
	s := source{store: store, object: o, offset: ref.Offset, length: ref.Length, id: o.ID}
	if ref.Offset < objectHeaderSize || ref.Length < 0 || ref.Offset > o.Size || ref.Length > o.Size-ref.Offset {
		return s, s.place(0, -1).corrupt("place of the run in a reference", fmt.Sprintf("%d to %d", objectHeaderSize, o.Size),
			fmt.Sprintf("%d to %d", ref.Offset, ref.Offset+ref.Length))
	}
	return s, nil
}

// place names a region by its offset in the run.
func (s *source) place(off int64, block int) place {
	return place{object: s.object.Name, offset: s.offset + off, block: block}
}

// read reads n bytes at off of the run.
func (s *source) read(ctx context.Context, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > s.length || n > s.length-off {
		return nil, s.place(off, -1).corrupt("end of the run", s.length, off+n)
	}
	if s.store == nil {
		return s.inline[off : off+n : off+n], nil
	}
	return readObject(ctx, s.store, s.object, s.offset+off, n)
}

// readObject reads n bytes at off of an object. What comes short is damage if
// the object is short, and the store's failure otherwise.
func readObject(ctx context.Context, store storage.Store, o checkpoint.Object, off, n int64) ([]byte, error) {
	b, err := store.ReadAt(ctx, o.Name, off, n)
	if err == nil && int64(len(b)) != n {
		err = fmt.Errorf("%d bytes instead of %d: %w", len(b), n, io.ErrUnexpectedEOF)
	}
	if err == nil {
		return b, nil
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		if short := checkSize(ctx, store, o); short != nil {
			return nil, short
		}
	}
	return nil, fmt.Errorf("read %d bytes at %d of %s in %s: %w", n, off, o.Name, store, err)
}

// checkSize compares the size of an object with what its manifest says.
func checkSize(ctx context.Context, store storage.Store, o checkpoint.Object) error {
	info, err := store.Stat(ctx, o.Name)
	if err != nil {
		return fmt.Errorf("size of %s in %s: %w", o.Name, store, err)
	}
	if info.Size != o.Size {
		return place{object: o.Name, offset: min(info.Size, o.Size), block: -1}.corrupt("size of the object",
			fmt.Sprintf("%d bytes", o.Size), fmt.Sprintf("%d bytes", info.Size))
	}
	return nil
}
