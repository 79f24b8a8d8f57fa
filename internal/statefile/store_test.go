package statefile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// mapStore is the smallest store that can be made to fail.
type mapStore struct {
	mu      sync.Mutex
	objects map[string][]byte
	open    int // writers neither committed nor aborted

	// fail, if set, is asked before each call: "write", "bytes" or "commit".
	fail func(verb, name string) error
	// cut makes reads come short though the object is whole.
	cut int64
}

func newMapStore() *mapStore { return &mapStore{objects: map[string][]byte{}} }

func (s *mapStore) check(verb, name string) error {
	if s.fail == nil {
		return nil
	}
	return s.fail(verb, name)
}

func (s *mapStore) Create(ctx context.Context, name string, b []byte) error {
	return errors.New("create: not used here")
}

func (s *mapStore) Write(ctx context.Context, name string) (storage.Writer, error) {
	if err := s.check("write", name); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &mapWriter{s: s, name: name}, nil
}

func (s *mapStore) ReadAt(ctx context.Context, name string, off, n int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.objects[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, storage.ErrNotFound)
	}
	size := int64(len(b)) - s.cut
	if off < 0 || off > size || n > size-off {
		return nil, fmt.Errorf("%s: %w", name, io.ErrUnexpectedEOF)
	}
	return append([]byte(nil), b[off:off+n]...), nil
}

func (s *mapStore) Stat(ctx context.Context, name string) (storage.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.objects[name]
	if !ok {
		return storage.Info{}, fmt.Errorf("%s: %w", name, storage.ErrNotFound)
	}
	return storage.Info{Name: name, Size: int64(len(b))}, nil
}

func (s *mapStore) List(ctx context.Context, prefix string) ([]storage.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []storage.Info
	for name, b := range s.objects {
		if strings.HasPrefix(name, prefix) {
			list = append(list, storage.Info{Name: name, Size: int64(len(b))})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list, nil
}

func (s *mapStore) Delete(ctx context.Context, name string) error { return nil }

func (s *mapStore) String() string { return "map" }

func (s *mapStore) visible() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}

func (s *mapStore) writers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

type mapWriter struct {
	s    *mapStore
	name string
	b    []byte
	done bool
}

func (w *mapWriter) Write(b []byte) (int, error) {
	if err := w.s.check("bytes", w.name); err != nil {
		return 0, err
	}
	w.b = append(w.b, b...)
	return len(b), nil
}

func (w *mapWriter) Commit() error {
	if err := w.s.check("commit", w.name); err != nil {
		return err
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.s.objects[w.name] != nil {
		return storage.ErrExists
	}
	w.s.objects[w.name] = w.b
	w.s.open--
	w.done = true
	return nil
}

func (w *mapWriter) Abort() {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if !w.done {
		w.done = true
		w.s.open--
	}
}

// named numbers objects from a.
func named(o Options) Options {
	n := 0
	o.Name = func() string { n++; return fmt.Sprintf("obj/%d", n) }
	o.ID = func() [16]byte { return [16]byte{0: byte(n), 15: 0xee} }
	return o
}

// discard is a store that keeps nothing, for benchmarks.
type discard struct{ mapStore }

func (*discard) Write(context.Context, string) (storage.Writer, error) { return discardWriter{}, nil }

type discardWriter struct{}

func (discardWriter) Write(b []byte) (int, error) { return len(b), nil }
func (discardWriter) Commit() error               { return nil }
func (discardWriter) Abort()                      {}

// mix is a stand-in for the key hash.
func mix(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 32
	return x * 0xd6e8feb86659fd93
}

func hashBytes(b []byte) uint64 {
	h := uint64(len(b)) + 1
	for _, c := range b {
		h = mix(h ^ uint64(c))
	}
	return h
}

// write writes entries as one run and seals it.
func write(t testing.TB, s storage.Store, c RunConfig, entries []Entry) (checkpoint.Ref, []checkpoint.Object) {
	t.Helper()
	p := NewPacker(t.Context(), s, named(Options{}))
	ref, objects, err := Collect(t.Context(), add(t, p, c, entries))
	if err != nil {
		t.Fatal(err)
	}
	return ref[0], objects
}

func add(t testing.TB, p *Packer, c RunConfig, entries []Entry) *Pending {
	t.Helper()
	w := p.NewRun(c)
	for _, e := range entries {
		var err error
		if e.Deleted {
			err = w.Delete(e.Hash, e.Key, e.Sub)
		} else {
			err = w.Add(e.Hash, e.Key, e.Sub, e.Value, e.Time)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// diffEntries says how got differs from want; a value that is empty and one that
// is not there are told apart by the layout, not here.
func diffEntries(want, got []Entry) string {
	for i := range min(len(want), len(got)) {
		w, g := want[i], got[i]
		if w.Hash != g.Hash || w.Time != g.Time || w.Deleted != g.Deleted ||
			!bytes.Equal(w.Key, g.Key) || !bytes.Equal(w.Sub, g.Sub) || !bytes.Equal(w.Value, g.Value) {
			return fmt.Sprintf("entry %d: want %+v, got %+v", i, w, g)
		}
	}
	if len(want) != len(got) {
		return fmt.Sprintf("want %d entries, got %d", len(want), len(got))
	}
	return ""
}

// seed prints the seed that a failing test must be given again.
func seed(t testing.TB) int64 {
	n := time.Now().UnixNano()
	t.Logf("seed %d", n)
	return n
}
