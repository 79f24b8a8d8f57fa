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
	moved        map[string]*inode // by names that a rename has taken away
	data         []byte
	synced       int
	at           entry // where the last rename brought it
}

// entry is a name in a directory.
type entry struct {
	dir  *inode
	base string
	name string // from the root
}

func newDir() *inode {
	return &inode{dir: true, now: map[string]*inode{}, durable: map[string]*inode{}, moved: map[string]*inode{}}
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
	return image{choice, map[entry]bool{}}.write(root, to, "")
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
	case link, rename:
		toUp, toBase := split(c.to)
		to, err := root.find(toUp)
		if err != nil {
			return err
		}
		f := d.now[base]
		to.now[toBase] = f
		if c.verb == rename {
			delete(d.now, base)
			d.moved[base], f.at = f, entry{to, toBase, c.to}
		}
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

// image is what is left, and what was decided about it.
type image struct {
	choice Choice
	kept   map[entry]bool
}

// keeps decides, once, whether a change of an entry is kept. A rename is one
// change of two entries: the old name goes only if the new one is there. (It may
// be that both are, where a file system's journal ends between them.) But where
// the directory of the old name was synced first, both may be gone: how much of
// a rename that sync makes durable is not promised.
func (m image) keeps(e entry) bool {
	if k, decided := m.kept[e]; decided {
		return k
	}
	k := m.choice.Entry(e.name)
	if f := e.dir.moved[e.base]; k && f != nil && e.dir.now[e.base] == nil {
		arrived := f.at.dir.now[f.at.base] == f
		durable := f.at.dir.durable[f.at.base] == f
		k = !arrived || durable || m.keeps(f.at)
	}
	m.kept[e] = k
	return k
}

func (m image) write(i *inode, to, name string) error {
	if !i.dir {
		kept, zeros := m.choice.Data(name, i.synced, len(i.data))
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
		if i.now[base] != child && m.keeps(entry{i, base, filepath.Join(name, base)}) {
			child = i.now[base]
		}
		if child == nil {
			continue
		}
		if err := m.write(child, filepath.Join(to, base), filepath.Join(name, base)); err != nil {
			return err
		}
	}
	return nil
}
