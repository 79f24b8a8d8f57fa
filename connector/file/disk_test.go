package file

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

// recorder is a disk that writes down the calls that change something, with
// names relative to root.
type recorder struct {
	osDisk
	root  string
	calls []string
	fail  string // prefix of the calls that fail
}

func (r *recorder) note(verb string, names ...string) error {
	for i, n := range names {
		if rel, err := filepath.Rel(r.root, n); err == nil {
			names[i] = rel
		}
	}
	call := verb + " " + strings.Join(names, " -> ")
	r.calls = append(r.calls, call)
	if r.fail != "" && strings.HasPrefix(call, r.fail) {
		return fs.ErrInvalid
	}
	return nil
}

func (r *recorder) Create(name string) (Segment, error) {
	if err := r.note("create", name); err != nil {
		return nil, err
	}
	f, err := r.osDisk.Create(name)
	return recordedSegment{f, r, name}, err
}

func (r *recorder) Mkdir(name string) error {
	if err := r.note("mkdir", name); err != nil {
		return err
	}
	return r.osDisk.Mkdir(name)
}

func (r *recorder) Rename(from, to string) error {
	if err := r.note("rename", from, to); err != nil {
		return err
	}
	return r.osDisk.Rename(from, to)
}

func (r *recorder) Link(from, to string) error {
	if err := r.note("link", from, to); err != nil {
		return err
	}
	return r.osDisk.Link(from, to)
}

func (r *recorder) Remove(name string) error {
	if err := r.note("remove", name); err != nil {
		return err
	}
	return r.osDisk.Remove(name)
}

func (r *recorder) SyncDir(dir string) error {
	if err := r.note("syncdir", dir); err != nil {
		return err
	}
	return r.osDisk.SyncDir(dir)
}

type recordedSegment struct {
	Segment
	r    *recorder
	name string
}

func (s recordedSegment) Write(p []byte) (int, error) {
	if err := s.r.note("write", s.name); err != nil {
		return 0, err
	}
	return s.Segment.Write(p)
}

func (s recordedSegment) Sync() error {
	if err := s.r.note("sync", s.name); err != nil {
		return err
	}
	return s.Segment.Sync()
}

func recorded(t *testing.T) (*Sink[item], *recorder) {
	r := &recorder{root: t.TempDir()}
	s := NewSink(filepath.Join(r.root, "a", "out"), codec.JSON[item]())
	s.disk = r
	return s, r
}

func at(generation, attempt uint64, subtask int) connector.Instance {
	return connector.Instance{Job: "orders", Operator: "ledger", Subtask: subtask, Lineage: 1, Generation: generation, Attempt: attempt}
}

// prepared writes n records and prepares them.
func prepared(t *testing.T, s *Sink[item], i connector.Instance, id connector.CheckpointID, n int) []connector.Committable {
	t.Helper()
	w, err := s.Writer(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for k := range n {
		if err := w.Write(t.Context(), connector.Batch[item]{Values: []item{makeItem(k)}}); err != nil {
			t.Fatal(err)
		}
	}
	cs, err := w.Prepare(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// What survives a loss of power is what was synced: a checkpoint that names a
// segment may be written once Prepare returned, and Committed once Commit did.
func TestOrderOfSyncs(t *testing.T) {
	s, r := recorded(t)
	cs := prepared(t, s, at(1, 1, 0), 7, 3)
	cs = append(cs, prepared(t, s, at(1, 1, 1), 7, 2)...)
	open := "a/out/.staging/orders.ledger.000001-0000000001-000001-00001-0000.open"
	staged := "a/out/.staging/orders.ledger.000001-0000000007-000001-00001-0000.jsonl"
	want := []string{
		"syncdir ..", // the entry of the directory that was there
		"mkdir a",
		"syncdir .",
		"mkdir a/out",
		"syncdir a",
		"mkdir a/out/.staging",
		"syncdir a/out",
		"create " + open,
		"write " + open,
		"sync " + open,
		"rename " + open + " -> " + staged,
		"syncdir a/out/.staging",
	}
	if got := r.calls[:min(len(want), len(r.calls))]; !slices.Equal(got, want) {
		t.Errorf("Prepare:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	r.calls = nil
	if err := s.Commit(t.Context(), cs); err != nil {
		t.Fatal(err)
	}
	want = []string{
		"link " + staged + " -> a/out/" + cs[0].ID,
		"link a/out/.staging/" + cs[1].ID + " -> a/out/" + cs[1].ID,
		"syncdir a/out",
		"remove " + staged,
		"remove a/out/.staging/" + cs[1].ID,
	}
	if !slices.Equal(r.calls, want) {
		t.Errorf("Commit:\n%s\nwant\n%s", strings.Join(r.calls, "\n"), strings.Join(want, "\n"))
	}

	// Committing again must sync again: the first may have failed at it.
	r.calls = nil
	if err := s.Commit(t.Context(), cs); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.calls, want[2:]) {
		t.Errorf("second Commit:\n%s\nwant\n%s", strings.Join(r.calls, "\n"), strings.Join(want[2:], "\n"))
	}
}

func TestFailureOfTheDiskIsReported(t *testing.T) {
	for _, call := range []string{"create", "write", "sync ", "rename", "syncdir a/out/.staging"} {
		t.Run(call, func(t *testing.T) {
			s, r := recorded(t)
			w, err := s.Writer(t.Context(), at(1, 1, 0))
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(t.Context(), connector.Batch[item]{Values: []item{makeItem(1)}}); err != nil {
				t.Fatal(err)
			}
			r.fail = call
			if cs, err := w.Prepare(t.Context(), 1); err == nil || cs != nil {
				t.Errorf("Prepare returned %v, %v", cs, err)
			}
			r.fail = ""
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, call := range []string{"link", "syncdir a/out", "remove"} {
		t.Run("commit "+call, func(t *testing.T) {
			s, r := recorded(t)
			cs := prepared(t, s, at(1, 1, 0), 1, 1)
			r.fail = call
			if err := s.Commit(t.Context(), cs); err == nil {
				t.Error("Commit returned nil")
			}
			r.fail = ""
			if err := s.Commit(t.Context(), cs); err != nil {
				t.Errorf("tried again: %v", err)
			}
			if got := committedLines(t, s.Dir, s.Codec); len(got) != 1 {
				t.Errorf("%d records", len(got))
			}
		})
	}
}
