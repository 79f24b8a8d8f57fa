package file

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/connectortest"
)

type item struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

func makeItem(i int) item { return item{N: i, Text: "item"} }

// committedLines reads all lines that the glob of committed segments shows.
func committedLines[T any](t testing.TB, dir string, c codec.Codec[T]) []T {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for sc := bufio.NewScanner(f); sc.Scan(); {
			v, err := c.Decode(sc.Bytes())
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, v)
		}
		f.Close()
	}
	return all
}

func TestSinkConforms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "the", "sink")
	connectortest.Sink(t,
		func(*testing.T) connector.Sink[item] { return NewSink(dir, codec.JSON[item]()) },
		makeItem,
		func(t *testing.T) []item { return committedLines(t, dir, codec.JSON[item]()) })
}

func TestCommitTellsWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, s *Sink[item], id string)
		lost   bool
		want   string // empty: no error
	}{
		{"untouched", func(*testing.T, *Sink[item], string) {}, false, ""},
		{"staged file is gone", func(t *testing.T, s *Sink[item], id string) {
			os.Remove(filepath.Join(s.staging(), id))
		}, true, "are neither in"},
		{"staged file is cut", func(t *testing.T, s *Sink[item], id string) {
			os.Truncate(filepath.Join(s.staging(), id), 5)
		}, true, "staged with"},
		{"committed before", func(t *testing.T, s *Sink[item], id string) {
			os.Rename(filepath.Join(s.staging(), id), filepath.Join(s.Dir, id))
		}, false, ""},
		{"committed before, and the staged name is still there", func(t *testing.T, s *Sink[item], id string) {
			os.Link(filepath.Join(s.staging(), id), filepath.Join(s.Dir, id))
		}, false, ""},
		{"a file of another size has the name", func(t *testing.T, s *Sink[item], id string) {
			writeFile(t, filepath.Join(s.Dir, id), "foreign")
		}, false, "another history of the job"},
		{"a file of the same size has the name", func(t *testing.T, s *Sink[item], id string) {
			b, err := os.ReadFile(filepath.Join(s.staging(), id))
			if err != nil {
				t.Fatal(err)
			}
			b[2] ^= 1
			writeFile(t, filepath.Join(s.Dir, id), string(b))
		}, false, "crc32c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := NewSink(t.TempDir(), codec.JSON[item]())
			cs := prepared(t, s, at(1, 1, 0), 1, 3)
			tt.change(t, s, cs[0].ID)
			err := s.Commit(t.Context(), cs)
			if errors.Is(err, connector.ErrLost) != tt.lost || (err == nil) != (tt.want == "") {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), cs[0].ID) {
					t.Errorf("%q does not say %q and %q", err, tt.want, cs[0].ID)
				}
				return
			}
			if got := committedLines(t, s.Dir, s.Codec); len(got) != 3 {
				t.Errorf("%d records are visible", len(got))
			}
			if left, _ := os.ReadDir(s.staging()); len(left) != 0 {
				t.Errorf("left in staging: %v", left)
			}
		})
	}
}

func TestRecoverRemovesOnlyWhatOlderAttemptsLeft(t *testing.T) {
	s := NewSink(t.TempDir(), codec.JSON[item]())
	older := prepared(t, s, at(2, 3, 0), 1, 1)
	prepared(t, s, at(1, 9, 0), 2, 1)
	same := prepared(t, s, at(2, 4, 0), 1, 1)
	higher := prepared(t, s, at(3, 1, 0), 1, 1)
	neighbour := at(1, 1, 0)
	neighbour.Operator = "ledger-2"
	other := prepared(t, s, neighbour, 1, 1)
	neighbour.Job, neighbour.Operator = "orders.ledger", ""
	other = append(other, prepared(t, s, neighbour, 1, 1)...)
	foreign := writeFile(t, filepath.Join(s.staging(), "orders.ledger.notes"), "mine")

	w, err := s.Writer(t.Context(), at(2, 3, 1)) // and one that is not prepared
	if err != nil {
		t.Fatal(err)
	}
	w.Write(t.Context(), connector.Batch[item]{Values: make([]item, 20_000)})
	pending := prepared(t, s, at(1, 1, 1), 1, 2)
	if err := s.Recover(t.Context(), at(2, 4, -1), pending); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close of a writer whose file was removed: %v", err)
	}

	left, err := os.ReadDir(s.staging())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range left {
		got = append(got, e.Name())
	}
	want := []string{same[0].ID, higher[0].ID, other[0].ID, other[1].ID, filepath.Base(foreign)}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("left in staging:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if slices.Contains(got, older[0].ID) {
		t.Error("an older attempt's segment is still there")
	}
	if lines := committedLines(t, s.Dir, s.Codec); len(lines) != 2 {
		t.Errorf("%d records are visible, want the 2 pending", len(lines))
	}
}

func TestLargeSegmentIsNotHeldInMemory(t *testing.T) {
	s := NewSink(t.TempDir(), codec.Text())
	w, err := s.Writer(t.Context(), at(1, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 1000)
	for range 5000 {
		if err := w.Write(t.Context(), connector.Batch[string]{Values: []string{line}}); err != nil {
			t.Fatal(err)
		}
	}
	if held := cap(w.(*writer[string]).buf); held > 4*flushSize {
		t.Errorf("%d bytes are held", held)
	}
	cs, err := w.Prepare(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), cs); err != nil {
		t.Fatal(err)
	}
	if got := committedLines(t, s.Dir, codec.Text()); len(got) != 5000 {
		t.Errorf("%d records", len(got))
	}
}

func TestRecordThatIsNotALineIsRefused(t *testing.T) {
	s := NewSink(t.TempDir(), codec.Text())
	w, err := s.Writer(t.Context(), at(1, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Write(t.Context(), connector.Batch[string]{Values: []string{"two\nlines"}}); err == nil || !strings.Contains(err.Error(), "newline") {
		t.Errorf("got %v", err)
	}
}

func TestNamesOfOperatorsDoNotMeet(t *testing.T) {
	i := at(1, 2, 3)
	i.Job, i.Operator = "../a/b.c", "ü d"
	name := segmentName(i, 4, ".jsonl")
	if want := "%2E%2E%2Fa%2Fb%2Ec.%C3%BC%20d.000001-0000000004-000001-00002-0003.jsonl"; name != want {
		t.Errorf("got %s, want %s", name, want)
	}
	if g, a, ok := attemptOf(i, name); g != 1 || a != 2 || !ok {
		t.Errorf("attemptOf: %d, %d, %v", g, a, ok)
	}
	i.Job, i.Operator = "../a/b", "c.ü d"
	if _, _, ok := attemptOf(i, name); ok {
		t.Error("the name is taken for that of another operator")
	}
}
