package inspect_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/inspect"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

var now = time.Unix(0, start+100*second)

// TestGolden holds what is printed, and the names and units in the JSON.
func TestGolden(t *testing.T) {
	f := newFixture(t)
	ctx := t.Context()
	show := func(id checkpoint.ID, barriers bool) (*inspect.Detail, error) {
		return inspect.Show(ctx, f.store, id, barriers)
	}
	tests := []struct {
		name  string
		print func(w io.Writer) error
	}{
		{"list.txt", func(w io.Writer) error {
			l, err := inspect.List(ctx, f.store, now)
			return errors.Join(err, l.WriteText(w))
		}},
		{"list.json", func(w io.Writer) error {
			l, err := inspect.List(ctx, f.store, now)
			return errors.Join(err, printJSON(w, l))
		}},
		{"show.txt", func(w io.Writer) error {
			d, err := show(0, false)
			return errors.Join(err, d.WriteText(w))
		}},
		{"show-barriers.txt", func(w io.Writer) error {
			d, err := show(1, true)
			return errors.Join(err, d.WriteText(w))
		}},
		{"show-barriers.json", func(w io.Writer) error {
			d, err := show(5, true)
			return errors.Join(err, printJSON(w, d))
		}},
		{"show-failed.txt", func(w io.Writer) error {
			d, err := show(4, false)
			return errors.Join(err, d.WriteText(w))
		}},
		{"verify.txt", func(w io.Writer) error {
			v, err := inspect.Verify(ctx, f.store, 0, func(v inspect.Verified) { v.WriteText(w) })
			fmt.Fprintln(w, v.Summary())
			return err
		}},
		{"gc-dry-run.txt", func(w io.Writer) error {
			c, err := inspect.Collect(ctx, f.store, true)
			return errors.Join(err, c.WriteText(w))
		}},
		{"gc-dry-run.json", func(w io.Writer) error {
			c, err := inspect.Collect(ctx, f.store, true)
			return errors.Join(err, printJSON(w, c))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := tt.print(&b); err != nil {
				t.Fatal(err)
			}
			path := "testdata/" + tt.name
			if *rewrite {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("-want +got; -rewrite if it should be so:\n%s", diff)
			}
		})
	}
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// changes says whether a call would change a store.
func changes(op memstore.Op) bool {
	return op.Verb != memstore.ReadAt && op.Verb != memstore.Stat && op.Verb != memstore.List
}

func TestReadersChangeNothing(t *testing.T) {
	f := newFixture(t)
	var done []string
	f.store.Hook = func(op memstore.Op) (out memstore.Outcome) {
		if changes(op) {
			done = append(done, op.String())
		}
		return out
	}
	ctx := t.Context()
	_, err1 := inspect.List(ctx, f.store, now)
	_, err2 := inspect.Show(ctx, f.store, 0, true)
	_, err3 := inspect.Verify(ctx, f.store, 0, nil)
	_, err4 := inspect.Collect(ctx, f.store, true)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Error(err)
	}
	if len(done) > 0 {
		t.Errorf("a reader did %q", done)
	}
}

// dispose gives checkpoint 2 up as the job does, with all that only it holds.
func (f *fixture) dispose() {
	f.append(ckptlog.Dispose{IDs: []checkpoint.ID{2}})
	for _, name := range f.store.Disk().Names() {
		if o, ok := checkpoint.ParseName(name); ok && o.ID == 2 {
			f.check(f.store.Delete(f.t.Context(), name))
		}
	}
}

// during runs f once, before the first call that fits.
func (f *fixture) during(verb memstore.Verb, prefix string, id checkpoint.ID, do func()) {
	f.store.Hook = func(op memstore.Op) memstore.Outcome {
		if o, ok := checkpoint.ParseName(op.Name); ok && op.Verb == verb && o.ID == id && strings.HasPrefix(op.Name, prefix) {
			f.store.Hook = nil
			do()
		}
		return memstore.Outcome{}
	}
}

// The job disposes of a checkpoint while it is looked at: that is no fault.
func TestDisposedMeanwhileIsNotMissing(t *testing.T) {
	t.Run("manifest", func(t *testing.T) {
		for name, look := range map[string]func(f *fixture) (any, error){
			"list": func(f *fixture) (any, error) {
				l, err := inspect.List(t.Context(), f.store, now)
				if err == nil && (len(l.Checkpoints) != 4 || l.Checkpoints[0].Status != inspect.Completed) {
					err = fmt.Errorf("%+v", l)
				}
				return l, err
			},
			"show":   func(f *fixture) (any, error) { return inspect.Show(t.Context(), f.store, 0, false) },
			"verify": func(f *fixture) (any, error) { return verified(t, f) },
			"gc":     func(f *fixture) (any, error) { return inspect.Collect(t.Context(), f.store, true) },
		} {
			f := newFixture(t)
			f.during(memstore.ReadAt, checkpoint.ManifestPrefix, 2, f.dispose)
			if _, err := look(f); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("object", func(t *testing.T) {
		f := newFixture(t)
		f.during(memstore.Stat, checkpoint.ObjectPrefix, 2, f.dispose)
		v, err := verified(t, f)
		if err != nil {
			t.Fatal(err)
		}
		gone := 0
		for _, o := range v.Objects {
			if o.Disposed {
				gone++
			}
		}
		if gone != 2 {
			t.Errorf("%d objects are disposed of", gone)
		}
	})
	t.Run("statistics", func(t *testing.T) {
		f := newFixture(t)
		f.during(memstore.ReadAt, checkpoint.ObjectPrefix, 2, f.dispose)
		if l, err := inspect.List(t.Context(), f.store, now); err != nil || l.Checkpoints[1].Status != inspect.Completed {
			t.Errorf("list: %+v, %v", l, err)
		}
		f = newFixture(t)
		f.during(memstore.ReadAt, checkpoint.ObjectPrefix, 2, f.dispose)
		if _, err := inspect.Show(t.Context(), f.store, 2, false); err == nil || !strings.Contains(err.Error(), "no checkpoint 2 (kept: [1 5])") {
			t.Errorf("show: %v", err)
		}
	})
}

// verified verifies, and fails if there is a fault.
func verified(t *testing.T, f *fixture) (*inspect.Verification, error) {
	v, err := inspect.Verify(t.Context(), f.store, 0, nil)
	if err == nil && v.Faults > 0 {
		err = fmt.Errorf("faults: %+v", v.Objects)
	}
	return v, err
}

func TestShowRefusesWhatIsNotThere(t *testing.T) {
	f := newFixture(t)
	if _, err := inspect.Show(t.Context(), f.store, 7, false); err == nil || !strings.Contains(err.Error(), "no checkpoint 7 (kept: [1 2 5])") {
		t.Error(err)
	}
	if _, err := inspect.List(t.Context(), memstore.New(), now); !errors.Is(err, ckptlog.ErrEmpty) {
		t.Errorf("empty store: %v", err)
	}
}

// A damaged manifest keeps nobody from the others, and the list says that a
// start fails.
func TestListTellsOfDamage(t *testing.T) {
	f := newFixture(t)
	name := f.named(checkpoint.ManifestPrefix, 5)
	f.flip(name, 30)
	l, err := inspect.List(t.Context(), f.store, now)
	if err != nil {
		t.Fatal(err)
	}
	last := l.Checkpoints[len(l.Checkpoints)-1]
	if last.ID != 5 || last.Status != inspect.Unreadable || last.Fault == nil || last.Fault.Kind != inspect.Damaged || last.Fault.Object != name {
		t.Errorf("%+v", last)
	}
	var b strings.Builder
	if l.WriteText(&b); !strings.Contains(b.String(), "resume from checkpoint 5, and fail: damaged: offset") {
		t.Error(b.String())
	}
}

func TestUnreachableIsAnError(t *testing.T) {
	f := newFixture(t)
	f.store.Hook = func(op memstore.Op) (out memstore.Outcome) {
		if strings.HasPrefix(op.Name, checkpoint.ManifestPrefix) {
			return memstore.Unreachable()
		}
		return out
	}
	_, err1 := inspect.List(t.Context(), f.store, now)
	_, err2 := inspect.Show(t.Context(), f.store, 0, false)
	_, err3 := inspect.Verify(t.Context(), f.store, 0, nil)
	_, err4 := inspect.Collect(t.Context(), f.store, false)
	for i, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, storage.ErrUnreachable) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
