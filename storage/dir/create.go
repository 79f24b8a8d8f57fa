package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"github.com/staunchdev/staunch/storage"
)

// Create implements storage.Store.
func (s *Store) Create(ctx context.Context, name string, b []byte) error {
	w, err := s.begin(ctx, "create", name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, bytes.NewReader(b)); err != nil {
		w.Abort()
		return err
	}
	return w.Commit()
}

// Write implements storage.Store.
func (s *Store) Write(ctx context.Context, name string) (storage.Writer, error) {
	w, err := s.begin(ctx, "write", name)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// writer is an object under its temporary name.
type writer struct {
	ctx         context.Context
	s           *Store
	doing, name string
	temp        string
	f           File
	done        bool
}

func (s *Store) begin(ctx context.Context, doing, name string) (*writer, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, s.fault(doing, name, fmt.Errorf("%w: %w", storage.ErrNotWritten, err))
	}
	if err := s.ready(ctx); err != nil {
		return nil, s.fault(doing, name, fmt.Errorf("%w: %w", storage.ErrNotWritten, err))
	}
	if err := s.gone(); err != nil {
		return nil, s.fault(doing, name, fmt.Errorf("%w: %w", storage.ErrNotWritten, err))
	}
	w := &writer{ctx: ctx, s: s, doing: doing, name: name, temp: s.tempName()}
	var err error
	if w.f, err = s.fs.Create(w.temp); err != nil {
		return nil, s.notWritten(doing, name, err)
	}
	return w, nil
}

// ready says why no call may be made any more.
func (s *Store) ready(ctx context.Context) error {
	if err := s.poisoned(); err != nil {
		return err
	}
	return ctx.Err()
}

var errDone = errors.New("the writer was committed or aborted")

func (w *writer) Write(p []byte) (int, error) {
	if w.done {
		return 0, w.s.fault(w.doing, w.name, fmt.Errorf("%w: %w", storage.ErrNotWritten, errDone))
	}
	if err := w.s.ready(w.ctx); err != nil {
		return 0, w.s.fault(w.doing, w.name, fmt.Errorf("%w: %w", storage.ErrNotWritten, err))
	}
	n, err := w.f.Write(p)
	if err != nil {
		return n, w.s.notWritten(w.doing, w.name, err)
	}
	return n, nil
}

// Abort drops what was written. A temporary file that cannot be removed is left
// to the next Open.
func (w *writer) Abort() {
	if w.done {
		return
	}
	w.done = true
	w.f.Close()
	w.s.fs.Remove(w.temp)
}

// Commit makes content, then name durable. Until the link, any error leaves
// nothing behind; from then on only a failed sync is left, which poisons.
func (w *writer) Commit() error {
	s := w.s
	if w.done {
		return s.fault(w.doing, w.name, fmt.Errorf("%w: %w", storage.ErrNotWritten, errDone))
	}
	w.done = true
	defer s.fs.Remove(w.temp)
	err := s.ready(w.ctx)
	if err != nil {
		w.f.Close()
		return s.fault(w.doing, w.name, fmt.Errorf("%w: %w", storage.ErrNotWritten, err))
	}
	if err := w.f.Sync(); err != nil {
		w.f.Close()
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			// Where space is claimed late, this is how a full disk shows. Only this
			// file is in doubt, and nothing names it.
			return s.notWritten(w.doing, w.name, err)
		}
		return s.fault(w.doing, w.name, s.poisonWith(w.temp, err))
	}
	if err := w.f.Close(); err != nil {
		return s.notWritten(w.doing, w.name, err)
	}
	dir := path.Dir(w.name)
	if err := s.makeDir(dir); err != nil {
		if errors.Is(err, storage.ErrPoisoned) {
			return s.fault(w.doing, w.name, err)
		}
		return s.notWritten(w.doing, w.name, err)
	}
	if err := w.link(); err != nil {
		return err
	}
	if err := s.fs.SyncDir(dir); err != nil {
		return s.fault(w.doing, w.name, s.poisonWith(dir, err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[w.name] = true
	return nil
}

// link gives the temporary file its name.
func (w *writer) link() error {
	s := w.s
	err := s.fs.Link(w.temp, w.name)
	switch {
	case err == nil, w.linked():
		return nil
	case errors.Is(err, fs.ErrExist):
		if err := s.settle(path.Dir(w.name), w.name); err != nil {
			return s.fault(w.doing, w.name, err)
		}
		return s.fault(w.doing, w.name, storage.ErrExists)
	case neverLinked(err):
		if errors.Is(err, fs.ErrNotExist) {
			s.forget()
		}
		return s.notWritten(w.doing, w.name, err)
	}
	return s.fault(w.doing, w.name, err)
}

// linked says whether the name is this writer's after all: over a network a link
// may be made, its reply lost, and the repeated request answered with "exists".
func (w *writer) linked() bool {
	a, err := w.s.fs.Lstat(w.temp)
	if err != nil {
		return false
	}
	b, err := w.s.fs.Lstat(w.name)
	return err == nil && os.SameFile(a, b)
}
