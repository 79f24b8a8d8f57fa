// Package dirtest records the file-system calls of a directory store and builds
// what a disk may hold if the power fails after any of them.
package dirtest

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"sync"

	"github.com/staunchdev/staunch/storage/dir"
)

// Recorder is a dir.FS that keeps all that it was asked to change. It stands
// before a directory that was empty. Calls are carried out one at a time.
type Recorder struct {
	under dir.FS

	mu    sync.Mutex
	calls []call
}

var _ dir.FS = (*Recorder)(nil)

type verb uint8

const (
	mkdir verb = iota + 1
	create
	write
	syncFile
	link
	remove
	syncDir
	rename
	note
)

var verbNames = [...]string{"", "mkdir", "create", "write", "sync", "link", "remove", "syncdir", "rename", "note"}

// call is one change. Files are numbered by their creation, since a name may be
// given to several.
type call struct {
	verb verb
	name string
	to   string // link, rename
	file int    // create, write, syncFile
	data []byte // write
	note any
}

// NewRecorder returns a Recorder that passes calls on to under.
func NewRecorder(under dir.FS) *Recorder { return &Recorder{under: under} }

// Note puts a mark between the calls, such as what the caller was just told.
func (r *Recorder) Note(v any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call{verb: note, note: v})
}

// Len is how many calls and notes there were.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// Notes returns the notes among the first n calls.
func (r *Recorder) Notes(n int) []any {
	r.mu.Lock()
	defer r.mu.Unlock()
	var notes []any
	for _, c := range r.calls[:n] {
		if c.verb == note {
			notes = append(notes, c.note)
		}
	}
	return notes
}

// String describes call i, for messages.
func (r *Recorder) String(i int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[i]
	return verbNames[c.verb] + " " + c.name + " " + c.to
}

// do carries a call out and records it if it had an effect.
func (r *Recorder) do(c call, f func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := f(); err != nil {
		return err
	}
	r.calls = append(r.calls, c)
	return nil
}

func (r *Recorder) Mkdir(name string) error {
	return r.do(call{verb: mkdir, name: name}, func() error { return r.under.Mkdir(name) })
}

func (r *Recorder) Link(old, name string) error {
	return r.do(call{verb: link, name: old, to: name}, func() error { return r.under.Link(old, name) })
}

func (r *Recorder) Remove(name string) error {
	return r.do(call{verb: remove, name: name}, func() error { return r.under.Remove(name) })
}

// Rename is for what writes beside the store and is recorded with it: the store
// never renames. The FS below must have the method too.
func (r *Recorder) Rename(from, to string) error {
	under, ok := r.under.(interface{ Rename(from, to string) error })
	if !ok {
		return errors.ErrUnsupported
	}
	return r.do(call{verb: rename, name: from, to: to}, func() error { return under.Rename(from, to) })
}

func (r *Recorder) SyncDir(name string) error {
	return r.do(call{verb: syncDir, name: name}, func() error { return r.under.SyncDir(name) })
}

func (r *Recorder) Create(name string) (dir.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := r.under.Create(name)
	if err != nil {
		return nil, err
	}
	n := len(r.calls)
	r.calls = append(r.calls, call{verb: create, name: name, file: n})
	return &file{r, f, name, n}, nil
}

// Lock is recorded as the creation of the lock's file; that it is held is no
// matter of the disk.
func (r *Recorder) Lock(name, text string) (func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.under.Lstat(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	release, err := r.under.Lock(name, text)
	if err == nil && isNew {
		r.calls = append(r.calls, call{verb: create, name: name, file: len(r.calls)})
	}
	return release, err
}

func (r *Recorder) Open(name string) (fs.File, error)      { return r.under.Open(name) }
func (r *Recorder) Lstat(name string) (fs.FileInfo, error) { return r.under.Lstat(name) }
func (r *Recorder) Same() error                            { return r.under.Same() }
func (r *Recorder) Close() error                           { return r.under.Close() }

type file struct {
	r    *Recorder
	f    dir.File
	name string
	file int
}

func (f *file) Write(p []byte) (n int, err error) {
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	n, err = f.f.Write(p)
	f.r.calls = append(f.r.calls, call{verb: write, name: f.name, file: f.file, data: bytes.Clone(p[:n])})
	return n, err
}

func (f *file) Sync() error {
	return f.r.do(call{verb: syncFile, name: f.name, file: f.file}, f.f.Sync)
}

func (f *file) Close() error { return f.f.Close() }

func split(name string) (parent, base string) { return path.Dir(name), path.Base(name) }
