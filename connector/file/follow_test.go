package file

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/staunchdev/staunch/connector"
)

func following(path string) *Source[string] {
	s := Lines(path)
	s.Follow, s.PollEvery = true, time.Millisecond
	return s
}

func TestFollowedFileGoesOn(t *testing.T) {
	s := following(writeFile(t, filepath.Join(t.TempDir(), "in"), "a\npart"))
	r := newReader(t, s)
	sp := splits(t, s)[0]
	if sp.End != nil {
		t.Fatal("a followed file has no end")
	}
	if err := r.Add(sp); err != nil {
		t.Fatal(err)
	}
	if b, next, err := await(t, r, 10); err != nil || !slices.Equal(b.Values, []string{"a"}) || next.N != 2 {
		t.Fatalf("got %q, %+v, %v: a line without newline is not there yet", b.Values, next, err)
	}
	if _, _, err := r.Poll(new(connector.Batch[string]), 10); !errors.Is(err, connector.ErrEmpty) {
		t.Fatalf("got %v, want ErrEmpty", err)
	}
	appendFile(t, s.Path, "ial\nb\nc")
	if b, next, err := await(t, r, 10); err != nil || !slices.Equal(b.Values, []string{"partial", "b"}) || next.N != 12 {
		t.Fatalf("got %q, %+v, %v", b.Values, next, err)
	}
	appendFile(t, s.Path, "\n")
	if b, _, err := await(t, r, 10); err != nil || !slices.Equal(b.Values, []string{"c"}) {
		t.Fatalf("got %q, %v", b.Values, err)
	}
}

func TestFollowedFileThatChanges(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, path string)
		want   error
	}{
		{"truncated", func(t *testing.T, p string) { os.Truncate(p, 2) }, ErrTruncated},
		{"written anew and longer", func(t *testing.T, p string) { writeFile(t, p, "other\ncontent\nthat is longer\n") }, ErrReplaced},
		{"path names another file", func(t *testing.T, p string) {
			os.Rename(p, p+".1")
			writeFile(t, p, "new\n")
		}, ErrReplaced},
		{"removed", func(t *testing.T, p string) { os.Remove(p) }, io.EOF},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := following(writeFile(t, filepath.Join(t.TempDir(), "in"), "first\nsecond\n"))
			r := newReader(t, s)
			if err := r.Add(splits(t, s)[0]); err != nil {
				t.Fatal(err)
			}
			if b, _, err := await(t, r, 10); err != nil || len(b.Values) != 2 {
				t.Fatalf("got %q, %v", b.Values, err)
			}
			if _, _, err := r.Poll(new(connector.Batch[string]), 10); !errors.Is(err, connector.ErrEmpty) {
				t.Fatalf("got %v, want ErrEmpty", err)
			}
			tt.change(t, s.Path)
			if b, _, err := await(t, r, 10); !errors.Is(err, tt.want) || len(b.Values) != 0 {
				t.Errorf("got %q, %v, want %v", b.Values, err, tt.want)
			}
		})
	}
}

func TestFollowedDirectoryFindsNewFiles(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/a", "1\n")
	e, err := following(dir).Enumerator(t.Context(), connector.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	discover := func(want ...string) {
		t.Helper()
		found, more, err := e.Discover(t.Context())
		var got []string
		for _, s := range found {
			got = append(got, s.ID)
		}
		if err != nil || !more || !slices.Equal(got, want) {
			t.Fatalf("got %q, more %v, %v; want %q", got, more, err, want)
		}
	}
	discover("a")
	discover()
	writeFile(t, dir+"/b", "2\n")
	discover("b")

	snap, err := e.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	e, _ = following(dir).Enumerator(t.Context(), connector.Instance{})
	if err := e.Restore(snap); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/c", "3\n")
	discover("c")

	// A name that was removed does not come back as another file unnoticed,
	// neither within a process nor over a restart.
	os.Remove(dir + "/b")
	discover()
	snap, _ = e.Snapshot()
	writeFile(t, dir+"/b", "new\n")
	if _, _, err := e.Discover(t.Context()); !errors.Is(err, ErrReplaced) {
		t.Errorf("got %v, want ErrReplaced", err)
	}
	e, _ = following(dir).Enumerator(t.Context(), connector.Instance{})
	e.Restore(snap)
	if _, _, err := e.Discover(t.Context()); !errors.Is(err, ErrReplaced) {
		t.Errorf("after a restart: got %v, want ErrReplaced", err)
	}
}
