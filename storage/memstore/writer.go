package memstore

import (
	"context"
	"errors"

	"github.com/staunchdev/staunch/storage"
)

// writer collects an object; only Commit touches the disk.
type writer struct {
	ctx   context.Context
	store *Store
	name  string
	b     []byte
	done  bool
}

// Write implements storage.Store.
func (s *Store) Write(ctx context.Context, name string) (storage.Writer, error) {
	op := Op{Verb: Write, Name: name}
	out, err := s.begin(ctx, op)
	if err == nil && out.Fate != Proceed {
		err = out.cause(errRefused)
	}
	if err != nil {
		return nil, fail(op, err, true)
	}
	return &writer{ctx: ctx, store: s, name: name}, nil
}

var errDone = errors.New("the writer was committed or aborted")

func (w *writer) Write(p []byte) (int, error) {
	op := Op{Verb: Append, Name: w.name, Off: int64(len(w.b)), Size: int64(len(p))}
	if w.done {
		return 0, fail(op, errDone, true)
	}
	out, err := w.store.begin(w.ctx, op)
	if err == nil && out.Fate != Proceed {
		err = out.cause(errRefused)
	}
	if err != nil {
		return 0, fail(op, err, true)
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

func (w *writer) Commit() error {
	op := Op{Verb: Commit, Name: w.name, Size: int64(len(w.b))}
	if w.done {
		return fail(op, errDone, true)
	}
	w.done = true
	return w.store.put(w.ctx, op, w.b)
}

func (w *writer) Abort() {
	w.done = true
	w.b = nil
}
