package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Disk is what the sink asks of the file system. It is an interface so that a
// test can record the order of calls: what survives a loss of power depends on
// which fsync came before which answer.
type Disk interface {
	// Create makes a file that must not exist.
	Create(name string) (Segment, error)
	Open(name string) (io.ReadCloser, error)
	Mkdir(name string) error
	Rename(from, to string) error
	// Link gives a file a second name; fs.ErrExist if that is taken.
	Link(from, to string) error
	Remove(name string) error
	Stat(name string) (fs.FileInfo, error)
	List(dir string) ([]string, error)
	// SyncDir makes the entries of a directory durable.
	SyncDir(dir string) error
}

// Segment is a file that is being written.
type Segment interface {
	io.WriteCloser
	Sync() error
}

// osDisk is the real one.
type osDisk struct{}

func (osDisk) Create(name string) (Segment, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}
func (osDisk) Open(name string) (io.ReadCloser, error) { return os.Open(name) }
func (osDisk) Mkdir(name string) error                 { return os.Mkdir(name, 0o777) }
func (osDisk) Rename(from, to string) error            { return os.Rename(from, to) }
func (osDisk) Link(from, to string) error              { return os.Link(from, to) }
func (osDisk) Remove(name string) error                { return os.Remove(name) }
func (osDisk) Stat(name string) (fs.FileInfo, error)   { return os.Stat(name) }

func (osDisk) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (osDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// mkdirAll makes dir and what is missing above it, from the top, and syncs the
// entry of each before it makes the next. So where a directory exists only its
// own entry may not be durable yet: a process may have died before the sync.
func mkdirAll(d Disk, dir string) error {
	parent := filepath.Dir(dir)
	if fi, err := d.Stat(dir); err == nil {
		if !fi.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		// Who gave us a directory below one that we cannot read made both.
		if err := d.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		return nil
	}
	if parent != dir {
		if err := mkdirAll(d, parent); err != nil {
			return err
		}
	}
	if err := d.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.SyncDir(parent)
}
