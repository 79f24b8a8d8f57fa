package dir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
)

// faulty fails the calls that are set.
type faulty struct {
	dir.FS
	create, write, sync, link, syncDir error
	linkAnyway                         bool // link takes place although it fails
}

func (f *faulty) Create(name string) (dir.File, error) {
	if f.create != nil {
		return nil, f.create
	}
	file, err := f.FS.Create(name)
	return &faultyFile{file, f}, err
}

func (f *faulty) Link(old, name string) error {
	if f.link != nil {
		if f.linkAnyway {
			f.FS.Link(old, name)
		}
		return f.link
	}
	return f.FS.Link(old, name)
}

func (f *faulty) SyncDir(name string) error {
	if f.syncDir != nil {
		return f.syncDir
	}
	return f.FS.SyncDir(name)
}

type faultyFile struct {
	dir.File
	f *faulty
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if f.f.write != nil {
		return len(p) / 2, f.f.write
	}
	return f.File.Write(p)
}

func (f *faultyFile) Sync() error {
	if f.f.sync != nil {
		return f.f.sync
	}
	return f.File.Sync()
}

// openFaulty opens a store that has made its directory durable and works so far.
func openFaulty(t *testing.T) (*dir.Store, *faulty, string) {
	t.Helper()
	s, f, path := openFaultyAt(t, t.TempDir())
	if err := s.Create(t.Context(), "d/first", []byte("1")); err != nil {
		t.Fatal(err)
	}
	return s, f, path
}

func openFaultyAt(t *testing.T, path string) (*dir.Store, *faulty, string) {
	t.Helper()
	under, err := dir.OS(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{FS: under}
	s, err := dir.Open(path, dir.WithFS(f))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, f, path
}

func TestFailedCreateWritesNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(*faulty, error)
		err   error
		says  string
	}{
		{"disk full at create", func(f *faulty, err error) { f.create = err }, syscall.ENOSPC, "the disk is full"},
		{"disk full at write", func(f *faulty, err error) { f.write = err }, syscall.ENOSPC, "the disk is full"},
		{"disk full at sync", func(f *faulty, err error) { f.sync = err }, syscall.ENOSPC, "the disk is full"},
		{"disk full at link", func(f *faulty, err error) { f.link = err }, syscall.ENOSPC, "the disk is full"},
		{"quota", func(f *faulty, err error) { f.write = err }, syscall.EDQUOT, "quota"},
		{"permission", func(f *faulty, err error) { f.create = err }, syscall.EACCES, "uid"},
		{"read-only", func(f *faulty, err error) { f.link = err }, syscall.EROFS, "read-only"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, f, path := openFaulty(t)
			tt.fault(f, tt.err)
			err := s.Create(t.Context(), "d/second", []byte("content"))
			if !errors.Is(err, storage.ErrNotWritten) || !errors.Is(err, tt.err) {
				t.Errorf("error %v, want ErrNotWritten and %v", err, tt.err)
			}
			for _, part := range []string{path, "d/second", tt.says} {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			*f = faulty{FS: f.FS}
			if temps := temporary(t, path); len(temps) > 0 {
				t.Errorf("left %q", temps)
			}
			if err := s.Create(t.Context(), "d/second", []byte("again")); err != nil {
				t.Errorf("once there is room: %v", err)
			}
		})
	}
}

// TestFailedSyncPoisons: what the page cache says after a failed sync proves nothing.
func TestFailedSyncPoisons(t *testing.T) {
	for name, fault := range map[string]func(*faulty){
		"file":      func(f *faulty) { f.sync = syscall.EIO },
		"directory": func(f *faulty) { f.syncDir = syscall.EIO },
	} {
		t.Run(name, func(t *testing.T) {
			s, f, _ := openFaulty(t)
			w, err := s.Write(t.Context(), "d/w")
			if err != nil {
				t.Fatal(err)
			}
			fault(f)
			err = s.Create(t.Context(), "d/second", []byte("content"))
			if !errors.Is(err, storage.ErrPoisoned) || !errors.Is(err, syscall.EIO) || errors.Is(err, storage.ErrNotWritten) {
				t.Errorf("error %v, want ErrPoisoned and EIO", err)
			}
			*f = faulty{FS: f.FS}
			_, err1 := s.ReadAt(t.Context(), "d/first", 0, -1)
			_, err2 := s.List(t.Context(), "")
			_, err3 := s.Stat(t.Context(), "d/first")
			_, err4 := s.Write(t.Context(), "d/x")
			for i, err := range []error{err1, err2, err3, err4, s.Create(t.Context(), "d/third", nil), s.Delete(t.Context(), "d/first"), w.Commit()} {
				if !errors.Is(err, storage.ErrPoisoned) {
					t.Errorf("later call %d: %v, want ErrPoisoned", i, err)
				}
			}
		})
	}
}

func TestNewDirectoryThatIsNotSyncedPoisons(t *testing.T) {
	s, f, _ := openFaulty(t)
	f.syncDir = syscall.EIO
	if err := s.Create(t.Context(), "new/dir/x", nil); !errors.Is(err, storage.ErrPoisoned) {
		t.Errorf("error %v, want ErrPoisoned", err)
	}
}

// TestLostReplyOfALink is what a network file system does.
func TestLostReplyOfALink(t *testing.T) {
	s, f, path := openFaulty(t)
	f.link, f.linkAnyway = os.ErrExist, true
	if err := s.Create(t.Context(), "d/second", []byte("mine")); err != nil {
		t.Errorf("link made, reply lost, repeated: %v", err)
	}
	f.link, f.linkAnyway = syscall.EIO, false
	if err := s.Create(t.Context(), "d/third", nil); err == nil || errors.Is(err, storage.ErrNotWritten) {
		t.Errorf("link with an unknown outcome: %v, want neither nil nor ErrNotWritten", err)
	}
	*f = faulty{FS: f.FS}
	if temps := temporary(t, path); len(temps) > 0 {
		t.Errorf("left %q", temps)
	}
}

// TestVanishedDirectoryIsNotEmpty: a volume that is not mounted must not look
// like a job without checkpoints.
func TestVanishedDirectoryIsNotEmpty(t *testing.T) {
	for name, vanish := range map[string]func(path string) error{
		"removed":  os.RemoveAll,
		"moved":    func(path string) error { return os.Rename(path, path+".away") },
		"replaced": func(path string) error { return errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			s := open(t, path)
			if err := s.Create(t.Context(), "log/0", []byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := vanish(path); err != nil {
				t.Fatal(err)
			}
			_, err1 := s.List(t.Context(), "log/")
			_, err2 := s.ReadAt(t.Context(), "log/1", 0, -1)
			_, err3 := s.Stat(t.Context(), "log/1")
			err4 := s.Create(t.Context(), "log/1", nil)
			for i, err := range []error{err1, err2, err3, err4} {
				if !errors.Is(err, storage.ErrUnreachable) || errors.Is(err, storage.ErrNotFound) || !strings.Contains(err.Error(), path+" is gone") {
					t.Errorf("call %d: %v, want ErrUnreachable that says which directory is gone", i, err)
				}
			}
			if !errors.Is(err4, storage.ErrNotWritten) {
				t.Errorf("create: %v, want ErrNotWritten", err4)
			}
		})
	}
}

func TestRemovedSubdirectoryIsMadeAgain(t *testing.T) {
	s, _, path := openFaulty(t)
	if err := os.RemoveAll(path + "/d"); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "d/x", nil); !errors.Is(err, storage.ErrNotWritten) {
		t.Errorf("create in a removed directory: %v", err)
	}
	if err := s.Create(t.Context(), "d/x", nil); err != nil {
		t.Errorf("the next create: %v", err)
	}
}

func temporary(t *testing.T, path string) []string {
	t.Helper()
	temps, err := filepath.Glob(path + "/.tmp/*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	return temps
}

// TestFailedSyncOfAnothersName: telling of a name that another process
// made takes a sync, which may fail as that of a create; but where it was not
// even tried, nothing is lost.
func TestFailedSyncOfAnothersName(t *testing.T) {
	path := t.TempDir()
	other := open(t, path)
	for _, tt := range []struct {
		err      error
		poisoned bool
	}{
		{syscall.EIO, true},
		{&os.PathError{Op: "sync", Path: "d", Err: syscall.EIO}, true},
		{&os.PathError{Op: "openat", Path: "d", Err: syscall.EMFILE}, false},
	} {
		for call, tell := range map[string]func(s *dir.Store) error{
			"list":   func(s *dir.Store) error { _, err := s.List(t.Context(), ""); return err },
			"stat":   func(s *dir.Store) error { _, err := s.Stat(t.Context(), "d/x"); return err },
			"read":   func(s *dir.Store) error { _, err := s.ReadAt(t.Context(), "d/x", 0, -1); return err },
			"create": func(s *dir.Store) error { return s.Create(t.Context(), "d/x", nil) },
		} {
			s, f, _ := openFaultyAt(t, path)
			if err := other.Create(t.Context(), "d/x", nil); err != nil && !errors.Is(err, storage.ErrExists) {
				t.Fatal(err)
			}
			f.syncDir = tt.err
			err := tell(s)
			if err == nil || errors.Is(err, storage.ErrExists) || errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s, sync says %v: %v", call, tt.err, err)
			}
			f.syncDir = nil
			err = tell(s)
			if poisoned := errors.Is(err, storage.ErrPoisoned); poisoned != tt.poisoned {
				t.Errorf("%s again, after the sync said %v: %v", call, tt.err, err)
			}
		}
	}
}
