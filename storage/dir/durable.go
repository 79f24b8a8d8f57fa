package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// A name is seen by every process once it is linked, and durable once somebody
// has synced its directory. In between its maker may have been killed. If this
// handle told of such a name, its caller would go on (append the next record,
// commit to a sink), and a loss of power might keep what it did and take the
// reason. So a name is made durable before it is told for the first time,
// whoever made it: settle for objects, makeDir for directories.

// settle makes durable names, seen in dir, that are not known to be. A handle
// for reading cannot, and changes nothing that a loss of power could part from
// what it read.
func (s *Store) settle(dir string, names ...string) error {
	if s.reads || s.settled(names) {
		return nil
	}
	if err := s.holdDir(dir, func(string) error { return nil }); err != nil {
		return err
	}
	if err := s.syncDir(dir); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.names[name] = true
	}
	return nil
}

func (s *Store) settled(names []string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if !s.names[name] {
			return false
		}
	}
	return true
}

// makeDir makes dir and what is missing above it, each durable in its parent.
func (s *Store) makeDir(dir string) error {
	return s.holdDir(dir, func(dir string) error {
		err := s.fs.Mkdir(dir)
		if errors.Is(err, fs.ErrExist) {
			if info, err := s.fs.Lstat(dir); err == nil && !info.IsDir() {
				return fmt.Errorf("%s is not a directory", dir)
			}
			return nil
		}
		return err
	})
}

// holdDir makes dir and all above it durable, after it has called each for what
// is not known to be, from the top. Finding a directory proves nothing: each is
// synced once by each process.
func (s *Store) holdDir(dir string, each func(dir string) error) error {
	s.mu.Lock()
	known := s.dirs[dir]
	s.mu.Unlock()
	if known {
		return nil
	}
	up := parent(dir)
	if err := s.holdDir(up, each); err != nil {
		return err
	}
	if err := each(dir); err != nil {
		return err
	}
	if err := s.syncDir(up); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirs[dir] = true
	return nil
}

// syncDir poisons the store if a sync failed. That a directory could not be
// opened, because it is gone or there are too many open files, leaves all as it
// was, and may be tried again.
func (s *Store) syncDir(dir string) error {
	err := s.fs.SyncDir(dir)
	var p *fs.PathError
	if err == nil || errors.As(err, &p) && p.Op != "sync" {
		return err
	}
	return s.poisonWith(dir, err)
}

// forget ends what is known of names and directories: somebody removes them.
func (s *Store) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.names)
	clear(s.dirs)
	s.dirs["."] = true
}

// parent is the directory above name; "." is the root.
func parent(name string) string { return path.Dir(name) }
