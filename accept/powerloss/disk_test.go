package powerloss

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/staunchdev/staunch/connector/file"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
	"github.com/staunchdev/staunch/storage/dir/dirtest"
)

// A disk has checkpoints in one directory and results in another. Both are
// recorded as one sequence of calls: what a checkpoint names must be durable
// before the checkpoint is.
const (
	checkpointsDir = "checkpoints"
	outDir         = "out"
)

// recording is a disk whose calls are recorded.
type recording struct {
	root string
	rec  *dirtest.Recorder
}

func newRecording(t *testing.T) *recording {
	t.Helper()
	r := &recording{root: t.TempDir()}
	under, err := dir.OS(r.root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { under.Close() })
	r.rec = dirtest.NewRecorder(renaming{under, r.root})
	// What dir.OS does for a store whose directory is not there.
	if err := r.rec.Mkdir(checkpointsDir); err != nil {
		t.Fatal(err)
	}
	if err := r.rec.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	return r
}

// renaming adds to a directory store's file system what the sink needs.
type renaming struct {
	dir.FS
	root string
}

func (r renaming) Rename(from, to string) error {
	return os.Rename(filepath.Join(r.root, filepath.FromSlash(from)), filepath.Join(r.root, filepath.FromSlash(to)))
}

// sub is a directory of a file system as a file system.
type sub struct {
	fs  dir.FS
	dir string
}

func (s sub) at(name string) string                  { return path.Join(s.dir, name) }
func (s sub) Mkdir(name string) error                { return s.fs.Mkdir(s.at(name)) }
func (s sub) Create(name string) (dir.File, error)   { return s.fs.Create(s.at(name)) }
func (s sub) Open(name string) (fs.File, error)      { return s.fs.Open(s.at(name)) }
func (s sub) Link(from, to string) error             { return s.fs.Link(s.at(from), s.at(to)) }
func (s sub) Remove(name string) error               { return s.fs.Remove(s.at(name)) }
func (s sub) SyncDir(name string) error              { return s.fs.SyncDir(s.at(name)) }
func (s sub) Lstat(name string) (fs.FileInfo, error) { return s.fs.Lstat(s.at(name)) }
func (s sub) Same() error                            { return s.fs.Same() }
func (s sub) Close() error                           { return nil }
func (s sub) Lock(name, text string) (func(), error) { return s.fs.Lock(s.at(name), text) }

// sinkDisk is the recorded disk as the file sink sees it: by absolute names.
type sinkDisk struct {
	osFiles
	r *recording
}

// rel says false for a name outside, which the sink syncs on its way down.
func (d sinkDisk) rel(name string) (string, bool) {
	rel, err := filepath.Rel(d.r.root, name)
	return filepath.ToSlash(rel), err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

func (d sinkDisk) inside(name string) string {
	rel, ok := d.rel(name)
	if !ok {
		panic(fmt.Sprintf("the sink changes %s, outside of %s", name, d.r.root))
	}
	return rel
}

func (d sinkDisk) Create(name string) (file.Segment, error) { return d.r.rec.Create(d.inside(name)) }
func (d sinkDisk) Mkdir(name string) error                  { return d.r.rec.Mkdir(d.inside(name)) }
func (d sinkDisk) Rename(from, to string) error {
	return d.r.rec.Rename(d.inside(from), d.inside(to))
}
func (d sinkDisk) Link(from, to string) error {
	return d.r.rec.Link(d.inside(from), d.inside(to))
}
func (d sinkDisk) Remove(name string) error { return d.r.rec.Remove(d.inside(name)) }
func (d sinkDisk) SyncDir(name string) error {
	if rel, ok := d.rel(name); ok {
		return d.r.rec.SyncDir(rel)
	}
	return nil
}

// osFiles is the operating system's files without syncs: after the last start
// the power does not fail, and they take most of the time.
type osFiles struct{}

func (osFiles) Create(name string) (file.Segment, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return unsyncedFile{f}, err
}
func (osFiles) Open(name string) (io.ReadCloser, error) { return os.Open(name) }
func (osFiles) Mkdir(name string) error                 { return os.Mkdir(name, 0o700) }
func (osFiles) Rename(from, to string) error            { return os.Rename(from, to) }
func (osFiles) Link(from, to string) error              { return os.Link(from, to) }
func (osFiles) Remove(name string) error                { return os.Remove(name) }
func (osFiles) Stat(name string) (fs.FileInfo, error)   { return os.Stat(name) }
func (osFiles) SyncDir(string) error                    { return nil }

func (osFiles) List(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// unsynced is the same for the store.
type unsynced struct{ dir.FS }

func (unsynced) SyncDir(string) error { return nil }

func (u unsynced) Create(name string) (dir.File, error) {
	f, err := u.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return unsyncedFile{f}, nil
}

type unsyncedFile struct{ dir.File }

func (unsyncedFile) Sync() error { return nil }

// A job opens its storage by URL, so the file systems are found by theirs.
var disks sync.Map // location -> func() (dir.FS, error)

func init() {
	storage.Register("recorded", func(_ context.Context, url string) (storage.Store, error) {
		open, ok := disks.Load(url)
		if !ok {
			return nil, fmt.Errorf("no disk %s", url)
		}
		fs, err := open.(func() (dir.FS, error))()
		if err != nil {
			return nil, err
		}
		return dir.Open(strings.TrimPrefix(url, "recorded:"), dir.WithFS(fs))
	})
}

// storageURL makes a disk known and returns its URL.
func storageURL(path string, open func() (dir.FS, error)) string {
	url := "recorded:" + path
	disks.Store(url, open)
	return url
}
