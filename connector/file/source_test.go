package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

func appendFile(t testing.TB, name, content string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

func newReader[T any](t testing.TB, s *Source[T]) connector.Reader[T] {
	t.Helper()
	r, err := s.Reader(t.Context(), connector.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func splits[T any](t testing.TB, s *Source[T]) []connector.Split {
	t.Helper()
	e, err := s.Enumerator(t.Context(), connector.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := e.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// await polls until there is a record, a bad line or an error that is not ErrEmpty.
func await[T any](t testing.TB, r connector.Reader[T], max int) (connector.Batch[T], connector.Offset, error) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		var b connector.Batch[T]
		_, next, err := r.Poll(&b, max)
		if !errors.Is(err, connector.ErrEmpty) {
			return b, next, err
		}
		select {
		case <-r.Available():
		case <-deadline:
			t.Fatal("nothing became available within 10 s")
		}
	}
}

func TestLinesOfABoundedFile(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"empty file", "", nil},
		{"newline at the end", "a\nb\n", []string{"a", "b"}},
		{"no newline at the end", "a\nb", []string{"a", "b"}},
		{"carriage returns", "a\r\nb\r\n", []string{"a", "b"}},
		{"carriage return at the end", "a\r", []string{"a"}},
		{"empty lines", "\n\na\n\r\n\nb\n\n", []string{"a", "b"}},
		{"only empty lines", "\n\n\n", nil},
		{"longer than a read", strings.Repeat("x", readSize+10) + "\nb\n", []string{strings.Repeat("x", readSize+10), "b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Lines(writeFile(t, filepath.Join(t.TempDir(), "in"), tt.content))
			r := newReader(t, s)
			if err := r.Add(splits(t, s)[0]); err != nil {
				t.Fatal(err)
			}
			var got []string
			for {
				b, next, err := await(t, r, 1)
				got = append(got, b.Values...)
				if err == io.EOF {
					if next.N != int64(len(tt.content)) {
						t.Errorf("offset at the end: %d, want %d", next.N, len(tt.content))
					}
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %.40q, want %.40q", got, tt.want)
			}
		})
	}
}

func TestDirectoryIsReadFileByFile(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/b", "3\n4\n5\n")
	writeFile(t, dir+"/a", "1\n2\n")
	writeFile(t, dir+"/.hidden", "no\n")
	if err := os.Mkdir(dir+"/sub", 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/sub/c", "no\n")
	s := Lines(dir)
	found := splits(t, s)
	if len(found) != 2 || found[0].ID != "a" || found[1].ID != "b" || found[0].Weight != 4 || found[1].End.N != 6 {
		t.Fatalf("splits: %+v", found)
	}
	r := newReader(t, s)
	for _, sp := range found {
		if err := r.Add(sp); err != nil {
			t.Fatal(err)
		}
	}
	var order []string
	for len(order) < 5 {
		b, _, err := await(t, r, 1)
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		order = append(order, b.Values...)
	}
	if got := strings.Join(order, ""); got != "13245" {
		t.Errorf("files are not polled in turn: %s", got)
	}
}

func TestManyFilesAreOpenedFewAtATime(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 * maxOpen {
		writeFile(t, fmt.Sprintf("%s/%03d", dir, i), "x\ny\n")
	}
	s := Lines(dir)
	r := newReader(t, s)
	for _, sp := range splits(t, s) {
		if err := r.Add(sp); err != nil {
			t.Fatal(err)
		}
	}
	n, ended := 0, 0
	for ended < 3*maxOpen {
		if open := len(r.(*reader[string]).active); open > maxOpen {
			t.Fatalf("%d files are open", open)
		}
		b, _, err := await(t, r, 1)
		n += len(b.Values)
		if err == io.EOF {
			ended++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 6*maxOpen {
		t.Errorf("%d records, want %d", n, 6*maxOpen)
	}
}

func TestBadLineIsNamedAndPassed(t *testing.T) {
	type rec struct {
		N int `json:"n"`
	}
	path := writeFile(t, filepath.Join(t.TempDir(), "in.jsonl"), "{\"n\":1}\n\n{bad\n{\"n\":3}\n")
	s := NewSource(path, codec.JSON[rec]())
	r := newReader(t, s)
	if err := r.Add(splits(t, s)[0]); err != nil {
		t.Fatal(err)
	}
	b, _, err := await(t, r, 10)
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	if len(b.Values) != 2 || b.Values[1].N != 3 || len(b.Bad) != 1 {
		t.Fatalf("got %+v", b)
	}
	if want := path + ":line 3 (offset 9)"; b.Bad[0].From != want || string(b.Bad[0].Raw) != "{bad" || b.Bad[0].Err == nil {
		t.Errorf("got %+v, want From %s", b.Bad[0], want)
	}

	// After a restart behind the first line the number goes on from the position.
	r = newReader(t, s)
	sp := splits(t, s)[0]
	if err := r.Add(sp); err != nil {
		t.Fatal(err)
	}
	_, sp.Next, err = await(t, r, 1)
	if err != nil {
		t.Fatal(err)
	}
	r = newReader(t, s)
	if err := r.Add(sp); err != nil {
		t.Fatal(err)
	}
	b, _, _ = await(t, r, 10)
	if want := path + ":line 3 (offset 9)"; len(b.Bad) != 1 || b.Bad[0].From != want {
		t.Errorf("after a restart: %+v, want From %s", b.Bad, want)
	}
}

func TestLineLongerThanTheLimitIsAnError(t *testing.T) {
	for _, long := range []string{strings.Repeat("x", 101), strings.Repeat("x", 3*readSize)} {
		path := writeFile(t, filepath.Join(t.TempDir(), "in"), "ok\n"+long+"\n")
		s := Lines(path)
		s.MaxLine = 100
		r := newReader(t, s)
		if err := r.Add(splits(t, s)[0]); err != nil {
			t.Fatal(err)
		}
		b, next, err := await(t, r, 10)
		if err != nil || len(b.Values) != 1 || next.N != 3 {
			t.Fatalf("before the long line: %v, %+v, %v", b.Values, next, err)
		}
		for range 2 { // and it stays one
			_, next, err = await(t, r, 10)
			if err == nil || !strings.Contains(err.Error(), path+":line 2 (offset 3)") || next.N != 3 {
				t.Fatalf("got %+v, %v", next, err)
			}
		}
	}
}

// cut reads one line of content and returns the split as it stands then.
func cut(t *testing.T, s *Source[string]) connector.Split {
	t.Helper()
	r := newReader(t, s)
	sp := splits(t, s)[0]
	if err := r.Add(sp); err != nil {
		t.Fatal(err)
	}
	_, next, err := await(t, r, 1)
	if err != nil {
		t.Fatal(err)
	}
	sp.Next = next
	return sp
}

func TestChangedFileIsRefusedAtARestart(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(t *testing.T, path string)
		wantErr error
		want    string
	}{
		{"untouched", func(*testing.T, string) {}, nil, ""},
		{"grown", func(t *testing.T, p string) { appendFile(t, p, "more\n") }, nil, ""},
		{"truncated", func(t *testing.T, p string) { os.Truncate(p, 3) }, ErrTruncated, "read up to offset 6, but the file has only 3 bytes"},
		{"replaced", func(t *testing.T, p string) { writeFile(t, p, "other\nsecond\n") }, ErrReplaced, "before offset 6"},
		{"removed", func(t *testing.T, p string) { os.Remove(p) }, ErrDeleted, "at offset 6"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Lines(writeFile(t, filepath.Join(t.TempDir(), "in"), "first\nsecond\n"))
			sp := cut(t, s)
			tt.change(t, s.Path)
			err := newReader(t, s).Add(sp)
			if !errors.Is(err, tt.wantErr) {
				t.Fatalf("got %v, want %v", err, tt.wantErr)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), s.Path)) {
				t.Errorf("%q does not say %q and %q", err, tt.want, s.Path)
			}
		})
	}
}

func TestBoundedFileThatShrinksIsAnError(t *testing.T) {
	s := Lines(writeFile(t, filepath.Join(t.TempDir(), "in"), "first\nsecond\n"))
	r := newReader(t, s)
	sp := splits(t, s)[0]
	os.Truncate(s.Path, 6)
	if err := r.Add(sp); err != nil {
		t.Fatal(err)
	}
	if b, _, err := await(t, r, 10); err != nil || len(b.Values) != 1 {
		t.Fatalf("%v, %v", b.Values, err)
	}
	if _, _, err := await(t, r, 10); !errors.Is(err, ErrTruncated) || !strings.Contains(err.Error(), "7 bytes are gone") {
		t.Errorf("got %v", err)
	}
}

func TestBoundedFileEndsWhereItWasFound(t *testing.T) {
	s := Lines(writeFile(t, filepath.Join(t.TempDir(), "in"), "first\nsec"))
	sp := splits(t, s)[0]
	appendFile(t, s.Path, "ond\nthird\n")
	r := newReader(t, s)
	if err := r.Add(sp); err != nil {
		t.Fatal(err)
	}
	b, _, err := await(t, r, 10)
	if err != io.EOF || !slices.Equal(b.Values, []string{"first", "second"}) {
		t.Errorf("got %q, %v: a line that began before the end is read whole, no other", b.Values, err)
	}
}
