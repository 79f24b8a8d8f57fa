// Package memstore is a storage.Store in memory for tests and the simulator: it
// can be crashed, and each call can be made to fail in every way that a real
// store can.
//
// A Disk holds the objects; Stores are handles on it, one for each process that
// is played. A hook is called with no lock held, so a simulator may switch to
// another coroutine inside it.
package memstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/staunchdev/staunch/storage"
)

// Store is one handle on a Disk. Set the hooks before its first use.
type Store struct {
	// Yield, if set, is called at the start of each call, before anything else.
	Yield func(Op)
	// Hook, if set, decides the fate of each call. It runs after Yield.
	Hook func(Op) Outcome

	disk *Disk
	boot int
	dead bool // by Kill; guarded by disk.mu
}

var _ storage.Store = (*Store)(nil)

// New returns a store on a disk of its own.
func New() *Store { return NewDisk().Open() }

// Disk returns what the store is a handle on.
func (s *Store) Disk() *Disk { return s.disk }

// Kill makes every later call of this handle fail without effect, as if its
// process had been killed. What is in flight still lands.
func (s *Store) Kill() {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.dead = true
}

func (s *Store) String() string { return "memory" }

// Create implements storage.Store.
func (s *Store) Create(ctx context.Context, name string, b []byte) error {
	return s.put(ctx, Op{Verb: Create, Name: name, Size: int64(len(b))}, bytes.Clone(b))
}

// put is the one way in which objects come to be. b belongs to the store.
func (s *Store) put(ctx context.Context, op Op, b []byte) error {
	out, err := s.begin(ctx, op)
	if err != nil {
		return fail(op, err, true)
	}
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.gone() {
		return fail(op, ErrDead, true)
	}
	d.tick()
	switch out.Fate {
	case Proceed, LoseReply, Unsynced:
		if !d.put(op.Name, b, out.Fate != Unsynced) && out.Fate == Proceed {
			return fail(op, storage.ErrExists, false)
		}
		if out.Fate == Proceed {
			return nil
		}
		return fail(op, out.cause(ErrNoReply), false)
	case LoseRequest:
		return fail(op, out.cause(ErrNoReply), false)
	case Delay:
		d.inFlight = append(d.inFlight, landing{Create, op.Name, b, out.After})
		return fail(op, out.cause(ErrNoReply), false)
	case Refuse:
		return fail(op, out.cause(errRefused), true)
	}
	panic(fmt.Sprintf("memstore: fate %d does not apply to %s", out.Fate, op))
}

// ReadAt implements storage.Store.
func (s *Store) ReadAt(ctx context.Context, name string, off, n int64) ([]byte, error) {
	op := Op{Verb: ReadAt, Name: name, Off: off, Size: n}
	var b []byte
	var short bool
	out, err := s.look(ctx, op, func() error {
		o, there := s.disk.objects[name]
		if !there {
			return storage.ErrNotFound
		}
		b, short = cut(o.content, off, n)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case out.Fate == Truncate && len(b) > 0:
		b, short = b[:min(max(out.Keep, 0), len(b)-1)], true
	case out.Fate == Damage && len(b) > 0:
		b[out.Keep%len(b)] ^= 0x55
	}
	if short {
		return b, fail(op, fmt.Errorf("%d bytes at %d, wanted %d: %w", len(b), off, n, io.ErrUnexpectedEOF), false)
	}
	return b, nil
}

// cut copies n bytes at off (n < 0: all) and says whether there were fewer.
func cut(content []byte, off, n int64) (b []byte, short bool) {
	size := int64(len(content))
	if off < 0 || off > size {
		return nil, true
	}
	end := size
	if n >= 0 {
		end = min(off+n, size)
	}
	return bytes.Clone(content[off:end]), n >= 0 && off+n > size
}

// Stat implements storage.Store.
func (s *Store) Stat(ctx context.Context, name string) (info storage.Info, err error) {
	_, err = s.look(ctx, Op{Verb: Stat, Name: name}, func() error {
		o, there := s.disk.objects[name]
		if !there {
			return storage.ErrNotFound
		}
		info = storage.Info{Name: name, Size: int64(len(o.content))}
		return nil
	})
	return info, err
}

// List implements storage.Store.
func (s *Store) List(ctx context.Context, prefix string) (infos []storage.Info, err error) {
	_, err = s.look(ctx, Op{Verb: List, Name: prefix}, func() error {
		infos = s.disk.list(prefix)
		return nil
	})
	return infos, err
}

// look runs a call that changes nothing.
func (s *Store) look(ctx context.Context, op Op, f func() error) (Outcome, error) {
	out, err := s.begin(ctx, op)
	if err != nil {
		return out, fail(op, err, false)
	}
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	switch {
	case s.gone():
		return out, fail(op, ErrDead, false)
	case out.Fate == Refuse:
		return out, fail(op, out.cause(errRefused), false)
	case out.Fate == LoseRequest || out.Fate == LoseReply || out.Fate == Delay:
		return out, fail(op, out.cause(ErrNoReply), false)
	}
	s.disk.tick()
	if err := f(); err != nil {
		return out, fail(op, err, false)
	}
	return out, nil
}

// Delete implements storage.Store.
func (s *Store) Delete(ctx context.Context, name string) error {
	op := Op{Verb: Delete, Name: name}
	out, err := s.begin(ctx, op)
	if err != nil {
		return fail(op, err, false)
	}
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.gone() {
		return fail(op, ErrDead, false)
	}
	d.tick()
	switch out.Fate {
	case Proceed:
		d.remove(name)
		return nil
	case LoseReply:
		d.remove(name)
	case Delay:
		d.inFlight = append(d.inFlight, landing{Delete, name, nil, out.After})
	case Refuse:
		return fail(op, out.cause(errRefused), false)
	}
	return fail(op, out.cause(ErrNoReply), false)
}

// begin is the start of each call: the name, the switch, the hook.
func (s *Store) begin(ctx context.Context, op Op) (out Outcome, err error) {
	if op.Verb != List {
		if err := storage.CheckName(op.Name); err != nil {
			return out, err
		}
	}
	if s.Yield != nil {
		s.Yield(op)
	}
	if err := ctx.Err(); err != nil {
		return out, err
	}
	if s.Hook != nil {
		out = s.Hook(op)
	}
	return out, nil
}

// gone says whether the handle's process is. disk.mu is held.
func (s *Store) gone() bool { return s.dead || s.boot != s.disk.boot }

var errRefused = errors.New("refused")

func (o Outcome) cause(otherwise error) error {
	if o.Err != nil {
		return o.Err
	}
	return otherwise
}

// fail makes the error of a call; nothing says that a create left nothing behind.
func fail(op Op, cause error, nothing bool) error {
	if nothing {
		return fmt.Errorf("memory store: %s: %w: %w", op, storage.ErrNotWritten, cause)
	}
	return fmt.Errorf("memory store: %s: %w", op, cause)
}
