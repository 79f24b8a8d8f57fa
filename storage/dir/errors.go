package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/staunchdev/staunch/storage"
)

// fault makes the error of a call: the store, the operation, the object, and
// what an operator has to know about the reason.
func (s *Store) fault(doing, name string, err error) error {
	what := doing
	if name != "" {
		what += " " + name
	}
	if errors.Is(err, storage.ErrUnreachable) {
		return fmt.Errorf("%s: %w", what, err) // it names the directory
	}
	return fmt.Errorf("%s: %s: %w%s", s, what, err, s.hint(name, err))
}

// notWritten is fault for a create that certainly left nothing behind.
func (s *Store) notWritten(doing, name string, err error) error {
	if gone := s.gone(); gone != nil {
		err = fmt.Errorf("%w (%w)", gone, err)
	}
	return s.fault(doing, name, fmt.Errorf("%w: %w", storage.ErrNotWritten, err))
}

// gone returns nil if the directory still is what it was. An unmounted volume
// looks like an empty directory, and a job must not take that for "no
// checkpoints".
func (s *Store) gone() error {
	if err := s.fs.Same(); err != nil {
		return fmt.Errorf("%w: %s is gone: %w", storage.ErrUnreachable, s, err)
	}
	return nil
}

func (s *Store) hint(name string, err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return " (the disk is full)"
	case errors.Is(err, syscall.EDQUOT):
		return " (the disk quota is used up)"
	case errors.Is(err, syscall.EROFS):
		return " (the file system is mounted read-only)"
	case errors.Is(err, fs.ErrPermission):
		return s.access(name)
	}
	return ""
}

// access says whose the file is, or the nearest directory that can be looked at.
func (s *Store) access(name string) string {
	for p := name; ; p = parent(p) {
		if p == "" {
			p = "."
		}
		info, err := os.Stat(s.path + "/" + p)
		if err == nil {
			return fmt.Sprintf(" (%s/%s has mode %v%s; this process runs as uid %d)", s.path, p, info.Mode(), owner(info), os.Getuid())
		}
		if p == "." {
			return ""
		}
	}
}

// neverLinked says whether a link that failed with err certainly made no name.
// A network file system may lose the reply of a link that it made.
func neverLinked(err error) bool {
	for _, e := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.ENOTDIR,
		syscall.EMLINK, syscall.ENAMETOOLONG, syscall.ENOTSUP, syscall.EXDEV} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
