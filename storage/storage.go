// Package storage is the contract of the write-once object store in which a
// job keeps its checkpoint log, its manifests and its state.
//
// Names are slash-separated relative paths without empty, "." or ".." parts.
// An object never changes once its name is visible, and a name is never used
// for a second content. Lists and reads are strongly consistent: what a
// successful Create or Commit made visible, every later List, Stat and ReadAt
// sees, in every process. What they or ErrExists tell of an object is durable,
// also if the process that made it was killed before its Create returned.
package storage

import (
	"context"
	"errors"
	"io"
)

// Store is a write-once object store. Its methods may be called by several
// goroutines at once.
type Store interface {
	// Create makes name with exactly the content b: all of it, durable, or
	// nothing. ErrExists says that name was there before; nothing changed.
	// ErrNotWritten (wrapped) says that nothing was and nothing will be written.
	// After any other error the outcome is unknown: the object may be there, or
	// may still appear, and the caller must read back before it decides.
	Create(ctx context.Context, name string, b []byte) error

	// Write begins an object that is too large to be held in memory. It becomes
	// visible, whole and durable, only by Commit.
	Write(ctx context.Context, name string) (Writer, error)

	// ReadAt reads n bytes at off; n < 0 reads to the end. Fewer bytes than asked
	// for is an error that wraps io.ErrUnexpectedEOF. A name that is not there is
	// ErrNotFound.
	ReadAt(ctx context.Context, name string, off, n int64) ([]byte, error)

	// Stat returns the size of name, or ErrNotFound.
	Stat(ctx context.Context, name string) (Info, error)

	// List returns the objects whose name begins with prefix (a plain string
	// prefix), in ascending order of names.
	List(ctx context.Context, prefix string) ([]Info, error)

	// Delete removes name. A name that is not there is no error. It is durable
	// only eventually: after a power loss a deleted object may be back.
	Delete(ctx context.Context, name string) error

	// String names the store for messages: "directory /var/job".
	String() string
}

// Writer is one object being written. It is used by one goroutine.
type Writer interface {
	io.Writer
	// Commit makes the object visible with all that was written. Its errors are
	// those of Store.Create.
	Commit() error
	// Abort drops what was written; after Commit it does nothing.
	Abort()
}

// Info describes an object.
type Info struct {
	Name string
	Size int64
}

var (
	// ErrExists says that an object of that name is there already.
	ErrExists = errors.New("storage: object exists")
	// ErrNotFound says that no object of that name is there.
	ErrNotFound = errors.New("storage: object not found")
	// ErrNotWritten says that a create failed and certainly left nothing behind.
	ErrNotWritten = errors.New("storage: nothing was written")
	// ErrPoisoned says that the store can no longer tell what is durable (a
	// failed fsync); the process must stop using it.
	ErrPoisoned = errors.New("storage: durability is unknown after a failed sync")
)
