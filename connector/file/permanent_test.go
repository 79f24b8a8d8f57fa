package file

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/stdio"
)

// Input that is gone does not come back by restarting: under the default policy,
// which restarts for ever, the job fails at once and says what is gone.
func TestInputThatIsGoneFailsTheJobAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		dir    bool
		change func(path string) error
		want   error
		says   string
	}{
		{"truncated", false, func(p string) error { return os.Truncate(p, 3) }, ErrTruncated, "read up to offset 13, but the file has only 3 bytes: 10 bytes are gone"},
		{"replaced", false, func(p string) error { return os.WriteFile(p, []byte("other\nsecond\n"), 0o666) }, ErrReplaced, "before offset 13"},
		{"a directory now", false, func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o777)) }, ErrReplaced, "in: is a directory"},
		{"a directory in a directory", true, func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o777)) }, ErrReplaced, "in: is a directory"},
		{"deleted", false, os.Remove, ErrDeleted, "what was not read of it is gone"},
		{"deleted in a directory", true, os.Remove, ErrDeleted, "at offset 13"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := filepath.Join(t.TempDir(), "in")
			path := writeFile(t, in, "first\nsecond\n")
			if tt.dir {
				in = filepath.Dir(in)
			}
			source := Lines(in)
			source.Follow, source.PollEvery = true, time.Millisecond
			run := func(ctx context.Context, completed func()) (staunch.Result, error) {
				j := staunch.NewJob("gone")
				staunch.To(staunch.From(j, "in", source), "out", &stdio.Sink[string]{W: io.Discard, Format: func(s string) string { return s }})
				return staunch.Run(ctx, j, staunch.Options{
					Storage: filepath.Join(filepath.Dir(path), ".job"), Parallelism: 1, Log: slog.New(slog.DiscardHandler),
					Checkpoint: staunch.CheckpointOptions{Interval: 5 * time.Millisecond},
					OnEvent: func(e staunch.Event) {
						if _, ok := e.(staunch.Checkpointed); ok {
							completed()
						}
					},
				})
			}
			ctx, stop := context.WithCancel(t.Context())
			n := 0
			if _, err := run(ctx, func() {
				if n++; n == 20 { // both lines were read long before
					stop()
				}
			}); err != nil {
				t.Fatal(err)
			}
			if err := tt.change(path); err != nil {
				t.Fatal(err)
			}
			ctx, stop = context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			r, err := run(ctx, func() {})
			if !errors.Is(err, tt.want) || !errors.Is(err, connector.ErrPermanent) || r.Restarts > 0 {
				t.Fatalf("after %d restarts: %v, want %v", r.Restarts, err, tt.want)
			}
			if !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "in") {
				t.Errorf("%q does not say %q", err, tt.says)
			}
		})
	}
}

// A job whose checkpoints were thrown away, but not its output, comes to the
// names of its earlier history again. No restart mends that: somebody has to
// decide what becomes of the old segments.
func TestSegmentOfAnotherHistoryFailsTheJobAtOnce(t *testing.T) {
	run := func(dir, history, line string) (staunch.Result, error) {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		j := staunch.NewJob("again")
		staunch.To(staunch.FromSlice(j, "in", []string{line}), "out", NewSink(filepath.Join(dir, "out"), codec.Text()))
		return staunch.Run(ctx, j, staunch.Options{
			Storage: filepath.Join(dir, history), Parallelism: 1, Log: slog.New(slog.DiscardHandler),
			Checkpoint: staunch.CheckpointOptions{Interval: -1},
		})
	}
	for _, line := range []string{"b", "longer"} { // another checksum, another size
		dir := t.TempDir()
		if _, err := run(dir, "first", "a"); err != nil {
			t.Fatal(err)
		}
		r, err := run(dir, "second", line)
		if !errors.Is(err, connector.ErrPermanent) || r.Restarts > 0 || !strings.Contains(err.Error(), "another history of the job wrote it") {
			t.Errorf("%s: after %d restarts: %v", line, r.Restarts, err)
		}
	}
}
