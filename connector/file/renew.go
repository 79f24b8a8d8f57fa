package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/staunchdev/staunch/connector"
)

// asidePrefix begins the names of the directories of segments set aside.
const asidePrefix = ".before-"

// Renew implements connector.Renewer.
func (s *Sink[T]) Renew(_ context.Context, i connector.Instance) (string, error) {
	names, err := s.fs().List(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("list %s: %w", s.Dir, err)
	}
	var old, asides []string
	for _, name := range names {
		if g, _, ok := attemptOf(i, name); ok {
			if g >= i.Generation {
				continue // of who has taken over from this start
			}
			old = append(old, name)
		} else if strings.HasPrefix(name, asidePrefix) {
			asides = append(asides, filepath.Join(s.Dir, name))
		}
	}
	switch {
	case len(old) == 0:
		// A start that was killed may have moved them and not come to its syncs.
		if s.SetAside && len(asides) > 0 {
			if err := s.syncMoved(asides); err != nil {
				return "", err
			}
		}
		return "there was none in " + s.Dir, nil
	case !s.SetAside:
		return fmt.Sprintf("%d committed segments stay in %s; the new ones come beside them", len(old), s.Dir), nil
	}
	// The generation makes the name new at each fresh start, and the same one
	// takes what an interrupted start has left.
	aside := filepath.Join(s.Dir, fmt.Sprintf("%s%06d", asidePrefix, i.Generation))
	if err := mkdirAll(s.fs(), aside); err != nil {
		return "", fmt.Errorf("make %s: %w", aside, err)
	}
	for _, name := range old {
		if err := s.fs().Rename(filepath.Join(s.Dir, name), filepath.Join(aside, name)); err != nil {
			return "", fmt.Errorf("set %s aside: %w", name, err)
		}
	}
	if err := s.syncMoved(append(asides, aside)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d committed segments were moved to %s", len(old), aside), nil
}

// syncMoved makes moves durable: the new entries first, since a segment must not
// be lost between the two.
func (s *Sink[T]) syncMoved(asides []string) error {
	for _, dir := range append(asides, s.Dir) {
		if err := s.fs().SyncDir(dir); err != nil {
			return fmt.Errorf("set segments aside: sync %s: %w", dir, err)
		}
	}
	return nil
}
