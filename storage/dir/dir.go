// Package dir is a storage.Store in a directory of a local or network file
// system.
//
// An object is a file. It is written under a temporary name, synced, linked to
// its name, and the directory is synced. Creating the file under its name and
// writing into it would be simpler, but a crash would leave a torn object that
// owns the name for ever; and a rename would overwrite where a link is refused.
//
// What is told of an object is durable, whoever made it: a process that was
// killed between its link and its sync leaves a name that a loss of power takes
// back, so a handle syncs the directory before it tells of a name it did not make.
//
// A sync that fails poisons the store: the kernel may have dropped what it could
// not write and say "done" the next time, so nothing that is read afterwards
// proves anything.
package dir

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/staunchdev/staunch/storage"
)

// Store is a directory store. Close it when nothing uses it any more.
type Store struct {
	path  string
	fs    FS
	owner string        // prefix of this handle's temporary files
	temps atomic.Uint64 // numbers them
	free  func()        // releases the lock that says that owner lives
	reads bool          // opened for reading: never syncs

	mu       sync.Mutex
	poison   error
	dirs     map[string]bool // directories known to be durable in their parents
	names    map[string]bool // objects known to be durable
	released bool
}

var _ storage.Store = (*Store)(nil)

// Option changes how a Store works.
type Option func(*Store)

// WithFS puts fs in the place of the operating system. Path is then a name only.
func WithFS(fs FS) Option { return func(s *Store) { s.fs = fs } }

// Open opens the store in the directory path, which is made if it is not there.
// Temporary files that dead processes left are removed.
func Open(path string, options ...Option) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: abs, dirs: map[string]bool{".": true}, names: map[string]bool{}}
	for _, o := range options {
		o(s)
	}
	if s.fs == nil {
		if s.fs, err = OS(abs); err != nil {
			return nil, s.fault("open", "", err)
		}
	}
	if err := s.beginTemps(); err != nil {
		s.fs.Close()
		return nil, s.fault("open", "", err)
	}
	return s, nil
}

func (s *Store) String() string { return "directory " + s.path }

// Close releases what the store holds of the operating system. Writers that are
// still open are dropped.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.released {
		return nil
	}
	s.released = true
	s.endTemps()
	return s.fs.Close()
}

// Lock takes a lock that lives as long as this process, or until release. If a
// living process holds it, the error is a *LockedError that says which.
func (s *Store) Lock(name string) (release func(), err error) {
	if err := storage.CheckName(name); err != nil {
		return nil, s.fault("lock", name, err)
	}
	release, err = s.fs.Lock(".lock-"+name, fmt.Sprintf("pid %d since %s", os.Getpid(), time.Now().Format(time.RFC3339)))
	if err != nil {
		return nil, s.fault("lock", name, err)
	}
	return release, nil
}

// poisoned returns the failed sync that ended the store, if there was one.
func (s *Store) poisoned() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poison
}

// poisonWith ends the store: what was to be synced is in an unknown state.
func (s *Store) poisonWith(doing string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poison == nil {
		s.poison = fmt.Errorf("%w: %s: sync %s: %w", storage.ErrPoisoned, s, doing, err)
	}
	return s.poison
}

func newOwner() string {
	var nonce [8]byte
	rand.Read(nonce[:])
	return fmt.Sprintf("%d-%s", os.Getpid(), hex.EncodeToString(nonce[:]))
}
