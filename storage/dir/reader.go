package dir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// OpenReader opens the store in the directory path for reading. The directory
// must be there, and nothing in it is made, locked or removed, so it may be
// another process's, or mounted read-only. Creates and deletes fail. A loss of
// power may take back what is read: nothing is synced either.
func OpenReader(path string) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: abs, reads: true, free: func() {}}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, fmt.Errorf("%s: open for reading: %w", s, err)
	}
	info, err := root.Stat(".")
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("%s: open for reading: %w", s, err)
	}
	s.fs = readOnly{&osFS{abs, root, info}}
	return s, nil
}

// readOnly refuses every call that would change the directory.
type readOnly struct{ FS }

var errReadOnly = errors.New("the store was opened for reading")

func (readOnly) Mkdir(string) error                  { return errReadOnly }
func (readOnly) Create(string) (File, error)         { return nil, errReadOnly }
func (readOnly) Link(string, string) error           { return errReadOnly }
func (readOnly) Remove(string) error                 { return errReadOnly }
func (readOnly) SyncDir(string) error                { return errReadOnly }
func (readOnly) Lock(string, string) (func(), error) { return nil, errReadOnly }

var _ FS = readOnly{}
