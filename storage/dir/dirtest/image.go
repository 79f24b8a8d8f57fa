package dirtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Choice decides what a loss of power leaves of what was not synced.
type Choice interface {
	// Entry says whether a change of a directory's entry name is kept.
	Entry(name string) bool
	// Data says how many of a file's bytes are kept, from synced to size, and
	// whether zeros stand in the place of the others.
	Data(name string, synced, size int) (kept int, zeros bool)
}

// DropAll loses everything that was not synced.
var DropAll Choice = extreme(false)

// KeepAll loses nothing.
var KeepAll Choice = extreme(true)

type extreme bool

func (e extreme) Entry(string) bool { return bool(e) }

func (e extreme) Data(_ string, synced, size int) (int, bool) {
	if e {
		return size, false
	}
	return synced, false
}

// EntriesOnly keeps every entry and no unsynced byte: what a file system does
// that orders its journal before its data.
var EntriesOnly Choice = entriesOnly{}

type entriesOnly struct{ extreme }

func (entriesOnly) Entry(string) bool { return true }

// Random chooses by r.
func Random(r *rand.Rand) Choice { return random{r} }

type random struct{ r *rand.Rand }

func (c random) Entry(string) bool { return c.r.IntN(2) == 0 }

func (c random) Data(_ string, synced, size int) (int, bool) {
	return synced + c.r.IntN(size-synced+1), c.r.IntN(2) == 0
}

// inode is a file or a directory. A directory has current and durable entries.
type inode struct {
	dir          bool
	now, durable map[string]*inode
	data         []byte
	synced       int
}

func newDir() *inode {
	return &inode{dir: true, now: map[string]*inode{}, durable: map[string]*inode{}}
}

// WriteImage makes, in the empty directory to, what the disk may hold if the
// power fails after the first n calls.
func (r *Recorder) WriteImage(to string, n int, choice Choice) error {
	r.mu.Lock()
	calls := slices.Clone(r.calls[:n])
	r.mu.Unlock()
	root := newDir()
	files := map[int]*inode{}
	for _, c := range calls {
		if err := apply(root, files, c); err != nil {
			return fmt.Errorf("replay %s %s: %w", verbNames[c.verb], c.name, err)
		}
	}
	return root.write(to, "", choice)
}

func apply(root *inode, files map[int]*inode, c call) error {
	up, base := split(c.name)
	switch c.verb {
	case note:
		return nil
	case write:
		files[c.file].data = append(files[c.file].data, c.data...)
		return nil
	case syncFile:
		files[c.file].synced = len(files[c.file].data)
		return nil
	case syncDir:
		d, err := root.find(c.name)
		if err == nil {
			d.durable = maps.Clone(d.now)
		}
		return err
	}
	d, err := root.find(up)
	if err != nil {
		return err
	}
	switch c.verb {
	case mkdir:
		d.now[base] = newDir()
	case create:
		f := &inode{}
		files[c.file] = f
		d.now[base] = f
	case remove:
		delete(d.now, base)
	case link:
		toUp, toBase := split(c.to)
		to, err := root.find(toUp)
		if err != nil {
			return err
		}
		to.now[toBase] = d.now[base]
	}
	return nil
}

func (i *inode) find(name string) (*inode, error) {
	if name == "." {
		return i, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if i = i.now[part]; i == nil || !i.dir {
			return nil, fmt.Errorf("no directory %s", name)
		}
	}
	return i, nil
}

func (i *inode) write(to, name string, choice Choice) error {
	if !i.dir {
		kept, zeros := choice.Data(name, i.synced, len(i.data))
		b := slices.Clone(i.data[:kept])
		if zeros {
			b = append(b, make([]byte, len(i.data)-kept)...)
		}
		return os.WriteFile(to, b, 0o600)
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	names := maps.Clone(i.now)
	maps.Copy(names, i.durable)
	for _, base := range slices.Sorted(maps.Keys(names)) {
		child := i.durable[base]
		if i.now[base] != child && choice.Entry(filepath.Join(name, base)) {
			child = i.now[base]
		}
		if child == nil {
			continue
		}
		if err := child.write(filepath.Join(to, base), filepath.Join(name, base), choice); err != nil {
			return err
		}
	}
	return nil
}
