package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/connector"
)

// enumerator finds the files. It remembers the names it returned, so that a
// restart neither returns a file twice nor misses one that came meanwhile.
//
// In a followed directory a name stands for one file for ever. Were a removed
// file's name taken up again (a log that is rotated), what the new file holds
// would have no place among the positions; so that is an error.
type enumerator struct {
	path   string
	follow bool
	known  map[string]*knownFile
}

type knownFile struct {
	info fs.FileInfo // as last seen by this process; nil after Restore
	gone bool
}

// Discover lists the path. The id of a split is the file's name in the
// directory, so that a checkpoint survives a move of the directory.
func (e *enumerator) Discover(context.Context) ([]connector.Split, bool, error) {
	infos, isDir, err := list(e.path)
	if err != nil && len(e.known) > 0 {
		err = deleted(err)
	}
	if err != nil {
		return nil, false, err
	}
	for _, fi := range infos {
		k := e.known[fi.Name()]
		if e.follow && k != nil && (k.gone || k.info != nil && !os.SameFile(k.info, fi)) {
			return nil, isDir, fmt.Errorf("%s: the name stood for another file before: %w",
				filepath.Join(e.path, fi.Name()), ErrReplaced)
		}
	}
	var found []connector.Split
	listed := make(map[string]bool, len(infos))
	for _, fi := range infos {
		listed[fi.Name()] = true
		if k := e.known[fi.Name()]; k != nil {
			k.info = fi
			continue
		}
		s := connector.Split{ID: fi.Name(), Weight: max(fi.Size(), 1)}
		if !e.follow {
			// The end is fixed here, so that a replay reads what the first
			// reading read, however the file grew since.
			s.End = &connector.Offset{N: fi.Size()}
		}
		found = append(found, s)
		e.known[fi.Name()] = &knownFile{info: fi}
	}
	for name, k := range e.known {
		k.gone = k.gone || !listed[name]
	}
	return found, e.follow && isDir, nil
}

// enumeratorState is what a checkpoint keeps.
type enumeratorState struct {
	Known []string `cbor:"1,keyasint"`
	Gone  []string `cbor:"2,keyasint,omitempty"` // those of Known that were removed
}

// Snapshot implements connector.Enumerator.
func (e *enumerator) Snapshot() ([]byte, error) {
	var s enumeratorState
	for _, name := range slices.Sorted(maps.Keys(e.known)) {
		s.Known = append(s.Known, name)
		if e.known[name].gone {
			s.Gone = append(s.Gone, name)
		}
	}
	return cbor.Marshal(s)
}

// Restore implements connector.Enumerator.
func (e *enumerator) Restore(b []byte) error {
	e.known = make(map[string]*knownFile)
	if len(b) == 0 {
		return nil
	}
	var s enumeratorState
	if err := cbor.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("restore the known files of %s: %w", e.path, err)
	}
	for _, name := range s.Known {
		e.known[name] = new(knownFile)
	}
	for _, name := range s.Gone {
		e.known[name] = &knownFile{gone: true}
	}
	return nil
}

// Close implements connector.Enumerator.
func (e *enumerator) Close() error { return nil }

// list returns the files that path stands for, by name.
func list(path string) (infos []fs.FileInfo, isDir bool, err error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, false, fmt.Errorf("find input: %w", err)
	}
	if !fi.IsDir() {
		if !fi.Mode().IsRegular() {
			return nil, false, fmt.Errorf("find input: %s is neither a regular file nor a directory", path)
		}
		return []fs.FileInfo{fi}, false, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, true, fmt.Errorf("list input directory: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		// Stat and not e.Info: a link to a file is read as that file.
		fi, err := os.Stat(filepath.Join(path, e.Name()))
		if errors.Is(err, fs.ErrNotExist) && e.Type()&fs.ModeSymlink == 0 {
			continue // removed since the listing
		}
		if err != nil {
			return nil, true, fmt.Errorf("list input directory: %w", err)
		}
		if fi.Mode().IsRegular() {
			infos = append(infos, fi)
		}
	}
	return infos, true, nil
}
