package dir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// FS is the file-system calls that a Store makes. Names are slash-separated and
// relative to the root, which is ".". A test puts its own in to record the calls
// or to make them fail.
type FS interface {
	// Mkdir makes one directory; fs.ErrExist if the name is taken.
	Mkdir(name string) error
	// Create makes a new file for writing; fs.ErrExist if the name is taken.
	Create(name string) (File, error)
	// Open opens a file or directory for reading.
	Open(name string) (fs.File, error)
	// Link gives a file a second name; fs.ErrExist if that is taken.
	Link(old, name string) error
	// Remove removes a file.
	Remove(name string) error
	// SyncDir makes the entries of a directory durable.
	SyncDir(name string) error
	// Lstat describes a name without following a link.
	Lstat(name string) (fs.FileInfo, error)
	// Lock takes the exclusive lock of the file name, which it makes, and writes
	// text into it. A lock that is held, by this or another process, is a
	// *LockedError. Locks end with their process.
	Lock(name, text string) (release func(), err error)
	// Same returns nil if the path that was opened still is this directory.
	Same() error
	Close() error
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error
}

const (
	fileMode = 0o600 // state is no other user's business
	dirMode  = 0o700
)

// osFS is a directory of the operating system. os.Root keeps every name inside
// it, symbolic links included.
type osFS struct {
	path string
	root *os.Root
	info fs.FileInfo
}

// OS opens the directory path, which it makes if it is not there, durably, with
// all that is missing above it.
func OS(path string) (FS, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := mkdirAll(path, syncPath); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	return &osFS{path, root, info}, nil
}

// mkdirAll makes path and what is missing above it, from the top, and syncs the
// entry of each before it makes the next. So of what is there already only the
// lowest entry may not be durable yet: its maker may have been killed before the
// sync.
func mkdirAll(path string, sync func(dir string) error) error {
	parent := filepath.Dir(path)
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", path)
		}
		// Where the directory above cannot be opened or synced by this process, it is
		// not this process's kind that made one in it.
		if err := sync(parent); err != nil && !cannotSync(err) {
			return err
		}
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := mkdirAll(parent, sync); err != nil {
		return err
	}
	if err := os.Mkdir(path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return sync(parent)
}

// cannotSync says that a directory can never be synced by this process, and not
// that a sync went wrong.
func cannotSync(err error) bool {
	for _, e := range []error{fs.ErrPermission, syscall.EINVAL, syscall.ENOTSUP, syscall.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// syncPath syncs a directory anywhere.
func syncPath(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (o *osFS) Mkdir(name string) error           { return o.root.Mkdir(name, dirMode) }
func (o *osFS) Open(name string) (fs.File, error) { return o.root.Open(name) }
func (o *osFS) Link(old, name string) error       { return o.root.Link(old, name) }
func (o *osFS) Remove(name string) error          { return o.root.Remove(name) }
func (o *osFS) Close() error                      { return o.root.Close() }

func (o *osFS) Lstat(name string) (fs.FileInfo, error) { return o.root.Lstat(name) }

func (o *osFS) Create(name string) (File, error) {
	f, err := o.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (o *osFS) SyncDir(name string) error {
	d, err := o.root.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (o *osFS) Same() error {
	info, err := os.Stat(o.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("it was removed or its volume is not mounted")
	case err != nil:
		return err
	case !os.SameFile(info, o.info):
		return errors.New("another directory is in its place")
	}
	return nil
}
