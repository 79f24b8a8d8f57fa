package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/staunchdev/staunch/connector"
)

// Renew implements connector.Renewer.
func (s *Sink[T]) Renew(_ context.Context, i connector.Instance) (string, error) {
	names, err := s.fs().List(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("list %s: %w", s.Dir, err)
	}
	var old []string
	for _, name := range names {
		if _, _, ok := attemptOf(i, name); ok {
			old = append(old, name)
		}
	}
	switch {
	case len(old) == 0:
		return "there was none in " + s.Dir, nil
	case !s.SetAside:
		return fmt.Sprintf("%d committed segments stay in %s; the new ones come beside them", len(old), s.Dir), nil
	}
	// The generation makes the name new at each fresh start, and the same one
	// takes what an interrupted start has left.
	aside := filepath.Join(s.Dir, fmt.Sprintf(".before-%06d", i.Generation))
	if err := mkdirAll(s.fs(), aside); err != nil {
		return "", fmt.Errorf("make %s: %w", aside, err)
	}
	for _, name := range old {
		if err := s.fs().Rename(filepath.Join(s.Dir, name), filepath.Join(aside, name)); err != nil {
			return "", fmt.Errorf("set %s aside: %w", name, err)
		}
	}
	if err := errors.Join(s.fs().SyncDir(aside), s.fs().SyncDir(s.Dir)); err != nil {
		return "", fmt.Errorf("set %d segments aside: %w", len(old), err)
	}
	return fmt.Sprintf("%d committed segments were moved to %s", len(old), aside), nil
}
