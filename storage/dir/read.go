package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/staunchdev/staunch/storage"
)

// ReadAt implements storage.Store.
func (s *Store) ReadAt(ctx context.Context, name string, off, n int64) ([]byte, error) {
	b, err := s.readAt(ctx, name, off, n)
	if err != nil {
		return b, s.fault("read", name, err)
	}
	return b, nil
}

func (s *Store) readAt(ctx context.Context, name string, off, n int64) ([]byte, error) {
	if err := s.readyFor(ctx, name); err != nil {
		return nil, err
	}
	f, err := s.fs.Open(name)
	if err != nil {
		return nil, s.absent(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, storage.ErrNotFound // a directory is no object
	}
	if err := s.settle(path.Dir(name), name); err != nil {
		return nil, s.absent(err)
	}
	size := info.Size()
	short := fmt.Errorf("%d bytes at offset %d of an object of %d: %w", n, off, size, io.ErrUnexpectedEOF)
	if off < 0 || off > size {
		return nil, short
	}
	// Allocate by what is there, not by what is asked: a damaged reference may ask
	// for anything.
	want := size - off
	if n >= 0 {
		want = min(n, want)
	}
	b := make([]byte, want)
	got, err := f.(io.ReaderAt).ReadAt(b, off)
	switch {
	case int64(got) < want && (err == nil || errors.Is(err, io.EOF)), n > want:
		return b[:got], short
	case int64(got) < want:
		return b[:got], err
	}
	return b, nil
}

// Stat implements storage.Store.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := s.readyFor(ctx, name); err != nil {
		return storage.Info{}, s.fault("stat", name, err)
	}
	info, err := s.fs.Lstat(name)
	if err != nil {
		return storage.Info{}, s.fault("stat", name, s.absent(err))
	}
	if !info.Mode().IsRegular() {
		return storage.Info{}, s.fault("stat", name, storage.ErrNotFound)
	}
	if err := s.settle(path.Dir(name), name); err != nil {
		return storage.Info{}, s.fault("stat", name, s.absent(err))
	}
	return storage.Info{Name: name, Size: info.Size()}, nil
}

// Delete implements storage.Store. The directory is not synced: that a deleted
// object may be back after a power loss is in the contract.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := s.readyFor(ctx, name); err != nil {
		return s.fault("delete", name, err)
	}
	// Removing an empty directory would pass for removing an object.
	info, err := s.fs.Lstat(name)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = s.fs.Remove(name)
		s.mu.Lock()
		delete(s.names, name)
		s.mu.Unlock()
	}
	if err = s.absent(err); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return s.fault("delete", name, err)
	}
	return nil
}

// List implements storage.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]storage.Info, error) {
	infos, err := s.list(ctx, prefix)
	if err != nil {
		return nil, s.fault("list", prefix, err)
	}
	return infos, nil
}

func (s *Store) list(ctx context.Context, prefix string) ([]storage.Info, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	top := "."
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		top = prefix[:i]
		if storage.CheckName(top) != nil {
			return nil, nil // no object can have such a name
		}
	}
	infos, err := s.walk(ctx, top, prefix, nil)
	if err != nil {
		return nil, err
	}
	// After the walk and not before: nothing of what it found may be believed if
	// the directory vanished meanwhile.
	if err := s.gone(); err != nil {
		return nil, err
	}
	slices.SortFunc(infos, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

// walk adds the objects below dir whose names begin with prefix, made durable.
func (s *Store) walk(ctx context.Context, dir, prefix string, infos []storage.Info) ([]storage.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := s.readDir(dir)
	if isAbsent(err) {
		return infos, nil
	}
	if err != nil {
		return nil, err
	}
	var here []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.Name()[0] == '.':
		case e.IsDir():
			// A directory leads to matches if the prefix goes on below it or ends before it.
			if strings.HasPrefix(name+"/", prefix) || strings.HasPrefix(prefix, name+"/") {
				if infos, err = s.walk(ctx, name, prefix, infos); err != nil {
					return nil, err
				}
			}
		case e.Type().IsRegular() && strings.HasPrefix(name, prefix):
			info, err := s.fs.Lstat(name)
			if isAbsent(err) {
				continue // deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			infos = append(infos, storage.Info{Name: name, Size: info.Size()})
			here = append(here, name)
		}
	}
	// At the end: a sync covers what was seen before it began.
	if err := s.settle(dir, here...); err != nil {
		return nil, err
	}
	return infos, nil
}

func (s *Store) readDir(name string) ([]fs.DirEntry, error) {
	d, err := s.fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	rd, ok := d.(fs.ReadDirFile)
	if !ok {
		return nil, fmt.Errorf("%s is not a directory", name)
	}
	return rd.ReadDir(-1)
}

func (s *Store) readyFor(ctx context.Context, name string) error {
	if err := storage.CheckName(name); err != nil {
		return err
	}
	return s.ready(ctx)
}

// absent turns "no such file" into ErrNotFound, if the directory is still there
// to say so.
func (s *Store) absent(err error) error {
	if !isAbsent(err) {
		return err
	}
	if gone := s.gone(); gone != nil {
		return gone
	}
	return storage.ErrNotFound
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
