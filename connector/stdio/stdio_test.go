package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/connectortest"
)

func TestSinkConforms(t *testing.T) {
	var out bytes.Buffer
	connectortest.Sink(t,
		func(*testing.T) connector.Sink[string] { return &Sink[string]{W: &out} },
		func(i int) string { return fmt.Sprint("record ", i) },
		func(*testing.T) []string {
			return strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
		})
}

// slow takes each byte by itself, as a stream may.
type slow struct{ bytes.Buffer }

func (s *slow) Write(p []byte) (int, error) {
	for i := range p {
		s.Buffer.Write(p[i : i+1])
	}
	return len(p), nil
}

func TestLinesDoNotInterleave(t *testing.T) {
	var out slow
	s := &Sink[string]{W: &out}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			w, err := s.Writer(t.Context(), connector.Instance{Subtask: i})
			if err != nil {
				t.Error(err)
				return
			}
			for range 100 {
				line := strings.Repeat(fmt.Sprint(i), 20)
				if err := w.Write(t.Context(), connector.Batch[string]{Values: []string{line, line}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 800 {
		t.Errorf("%d lines, want 800", len(lines))
	}
	for _, l := range lines {
		if len(l) != 20 || strings.Trim(l, l[:1]) != "" {
			t.Fatalf("mixed line %q", l)
		}
	}
}

func TestPrepareFlushes(t *testing.T) {
	var out bytes.Buffer
	s := &Sink[int]{W: bufio.NewWriter(&out), Format: func(i int) string { return fmt.Sprintf("<%d>", i) }}
	w, _ := s.Writer(t.Context(), connector.Instance{})
	w.Write(t.Context(), connector.Batch[int]{Values: []int{1, 2}})
	if cs, err := w.Prepare(t.Context(), 1); cs != nil || err != nil {
		t.Fatal(cs, err)
	}
	if out.String() != "<1>\n<2>\n" {
		t.Errorf("got %q", out.String())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestErrorsOfTheStreamAreReported(t *testing.T) {
	w, _ := (&Sink[int]{W: broken{}}).Writer(t.Context(), connector.Instance{})
	if err := w.Write(t.Context(), connector.Batch[int]{Values: []int{1}}); err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("got %v", err)
	}
}

func TestSpecSaysWhy(t *testing.T) {
	spec := Print[int]().Spec()
	if spec.Kind != connector.AtLeastOnce || spec.System != "stdout" || spec.Why != "a stream that is written cannot be taken back" {
		t.Errorf("got %+v", spec)
	}
}
