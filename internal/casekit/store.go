package casekit

import (
	"errors"
	"strings"
	"sync"

	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage/memstore"
)

// Store is a disk in memory, and what becomes of the calls of the handles that
// were opened on it: a rule that a test may change while a job runs, and a
// record of every call.
type Store struct {
	Disk *memstore.Disk

	mu   sync.Mutex
	rule func(memstore.Op) memstore.Outcome
	ops  []memstore.Op
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{Disk: memstore.NewDisk()} }

// Open returns a handle, for one process.
func (s *Store) Open() *memstore.Store {
	h := s.Disk.Open()
	h.Hook = func(op memstore.Op) memstore.Outcome {
		s.mu.Lock()
		s.ops = append(s.ops, op)
		rule := s.rule
		s.mu.Unlock()
		if rule == nil {
			return memstore.Outcome{}
		}
		return rule(op) // without the lock: it may block
	}
	return h
}

// Rule decides the fate of calls from now on; nil: all are carried out.
func (s *Store) Rule(rule func(memstore.Op) memstore.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rule = rule
}

// Ops are the calls since the last one of Forget.
func (s *Store) Ops() []memstore.Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]memstore.Op(nil), s.ops...)
}

// Forget forgets the calls so far.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops = nil
}

// Count is how many recorded calls there are of a verb on names that begin with
// prefix.
func (s *Store) Count(verb memstore.Verb, prefix string) (n int) {
	for _, op := range s.Ops() {
		if op.Verb == verb && strings.HasPrefix(op.Name, prefix) {
			n++
		}
	}
	return n
}

// Forbidden is the outcome of a call that the store's owner does not allow.
func Forbidden() memstore.Outcome {
	return memstore.Outcome{Fate: memstore.Refuse, Err: errors.New("403 Forbidden")}
}

// Names are the objects that begin with prefix.
func (s *Store) Names(prefix string) (names []string) {
	infos, err := s.Disk.Open().List(background, prefix)
	if err != nil {
		panic(err) // a handle without rules on a disk that was not crashed
	}
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names
}

// View is what the checkpoint log says.
func (s *Store) View() (ckptlog.View, error) { return ckptlog.Read(background, s.Disk.Open()) }

// Files are the manifest of a checkpoint and all objects that it names.
func (s *Store) Files(c ckptlog.Retained) ([]string, error) {
	m, err := cluster.ReadManifest(background, s.Disk.Open(), c)
	if err != nil {
		return nil, err
	}
	files := []string{c.Manifest.Name}
	for _, o := range m.Objects {
		files = append(files, o.Name)
	}
	return files, nil
}

// Missing are the files of a checkpoint that are not there.
func (s *Store) Missing(c ckptlog.Retained) (gone []string, err error) {
	files, err := s.Files(c)
	if err != nil {
		return nil, err
	}
	h := s.Disk.Open()
	for _, name := range files {
		if _, err := h.Stat(background, name); err != nil {
			gone = append(gone, name)
		}
	}
	return gone, nil
}
