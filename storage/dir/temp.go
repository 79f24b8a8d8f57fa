package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Temporary files live in one hidden directory, as owner-number.tmp, beside the
// owner.lock that is locked while the owner lives.
const (
	tempDir  = ".tmp"
	lockTail = ".lock"
)

// beginTemps takes this handle's lock, then removes what dead owners left. The
// lock is taken before any temporary file is made and removed after all are
// gone, so a file without a lock that is held belongs to nobody.
func (s *Store) beginTemps() error {
	if err := s.fs.Mkdir(tempDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	s.owner = newOwner()
	free, err := s.fs.Lock(tempDir+"/"+s.owner+lockTail, s.owner)
	if err != nil {
		return err
	}
	s.free = free
	if err := s.removeDead(); err != nil {
		s.endTemps()
		return err
	}
	return nil
}

// endTemps removes this handle's lock; its files are left to the next Open.
func (s *Store) endTemps() {
	s.fs.Remove(tempDir + "/" + s.owner + lockTail)
	s.free()
}

func (s *Store) removeDead() error {
	entries, err := s.readDir(tempDir)
	if err != nil {
		return err
	}
	// An owner may begin between the list and the check of its lock; its files
	// are not in the list, and its lock is held.
	alive := map[string]bool{s.owner: true}
	for _, e := range entries {
		owner, isLock := strings.CutSuffix(e.Name(), lockTail)
		if !isLock || owner == s.owner {
			continue
		}
		release, err := s.fs.Lock(tempDir+"/"+e.Name(), "")
		var held *LockedError
		if errors.As(err, &held) {
			alive[owner] = true
			continue
		}
		if err != nil {
			return err
		}
		defer release()
		defer s.fs.Remove(tempDir + "/" + e.Name())
	}
	for _, e := range entries {
		owner, isTemp := tempOwner(e.Name())
		if isTemp && !alive[owner] {
			if err := s.fs.Remove(tempDir + "/" + e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func (s *Store) tempName() string {
	return fmt.Sprintf("%s/%s-%d.tmp", tempDir, s.owner, s.temps.Add(1))
}

func tempOwner(name string) (string, bool) {
	base, ok := strings.CutSuffix(name, ".tmp")
	i := strings.LastIndexByte(base, '-')
	if !ok || i < 0 {
		return "", false
	}
	return base[:i], true
}
