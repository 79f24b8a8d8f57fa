package staunch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/file"
	"github.com/staunchdev/staunch/connector/gen"
)

func command(ctx context.Context, storage, args string, src connector.Source[string], told func(staunch.Event)) (int, string) {
	var out strings.Builder
	code := staunch.Command(ctx, strings.Fields(args), &out, &out, func() *staunch.Job {
		j := staunch.NewJob("lines")
		j.Defaults(staunch.Options{Storage: storage, OnEvent: told, Checkpoint: staunch.CheckpointOptions{Interval: 5 * time.Millisecond}})
		staunch.To(staunch.From(j, "lines", src), "out", newMemory[string]())
		return j
	})
	return code, out.String()
}

// A line that comes after the job's end is not read by a later start; that
// start says so.
func TestStartOfAnEndedJobSaysThatNothingIsRead(t *testing.T) {
	dir := t.TempDir()
	input, storage := filepath.Join(dir, "in.txt"), filepath.Join(dir, "checkpoints")
	for i, text := range []string{"a\n", "a\nb\n"} {
		if err := os.WriteFile(input, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out := command(t.Context(), storage, "run", file.Lines(input), nil)
		if code != 0 || strings.Contains(out, "the job had ended with it, so nothing more is read") != (i == 1) {
			t.Errorf("start %d: status %d, output:\n%s", i+1, code, out)
		}
	}
}

// Another kind of source cannot read the position in the checkpoint, however
// often it tries.
func TestAnotherKindOfSourceFailsTheStart(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	endless := &gen.Source[string]{Make: func(int, int64) string { return "x" }, Rate: 1000}
	if code, out := command(ctx, dir, "run", endless, func(e staunch.Event) {
		if _, ok := e.(staunch.Checkpointed); ok {
			stop()
		}
	}); code != 0 {
		t.Fatalf("status %d:\n%s", code, out)
	}
	ctx, stop = context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	restarts := 0
	code, out := command(ctx, dir, "run", file.Lines(t.TempDir()), func(e staunch.Event) {
		if _, ok := e.(staunch.Restarting); ok {
			restarts++
			stop()
		}
	})
	if code != 1 || restarts > 0 || !strings.Contains(out, `source "lines": the checkpoint holds the position of another kind of source`) {
		t.Errorf("status %d, %d restarts:\n%s", code, restarts, out)
	}
}

func TestRestartsGivesUp(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nothing-here")
	code, out := command(t.Context(), t.TempDir(), "-restarts -1", file.Lines(missing), nil)
	if code != 1 || !strings.Contains(out, missing) {
		t.Errorf("status %d:\n%s", code, out)
	}
}

func TestNegativeRateIsRefused(t *testing.T) {
	code, out := command(t.Context(), t.TempDir(), "run -rate -1", file.Lines(t.TempDir()), nil)
	if code != 2 || !strings.HasPrefix(out, "rate is -1") {
		t.Errorf("status %d:\n%s", code, out)
	}
}

// unwilling refuses to commit twice.
type unwilling struct {
	*memory[string]
	refused atomic.Int32
}

func (u *unwilling) Commit(ctx context.Context, cs []connector.Committable) error {
	if u.refused.Add(1) <= 2 {
		return errors.New("the disk is full")
	}
	return u.memory.Commit(ctx, cs)
}

// A job whose sink does not take what a checkpoint holds makes no progress, and
// its log is where one looks for why: at once, and then once a minute.
func TestCommitThatIsTriedAgainIsLogged(t *testing.T) {
	var log bytes.Buffer
	j := staunch.NewJob("lines")
	staunch.To(staunch.FromSlice(j, "lines", []string{"a"}), "out", &unwilling{memory: newMemory[string]()})
	if _, err := staunch.Run(t.Context(), j, staunch.Options{Storage: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "sinks cannot commit yet"); n != 1 || !strings.Contains(log.String(), `sink \"out\"`) || !strings.Contains(log.String(), "the disk is full") {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// A name to drop that is not there is a slip of the pen, or the flag of an
// earlier start. What the job claims is kept, and that is said.
func TestDropStateOfWhatIsNotThere(t *testing.T) {
	storage := "mem:" + t.Name()
	run := func(args string) (int, string) {
		var out bytes.Buffer
		status := staunch.Command(t.Context(), strings.Fields(args), &out, &out, func() *staunch.Job {
			j := staunch.NewJob("j")
			counts := staunch.Count(staunch.KeyBy(staunch.FromSlice(j, "in", numbers(3)), func(v int) int { return v }), "account")
			staunch.To(counts, "out", newMemory[staunch.KV[int, int64]]())
			j.Defaults(staunch.Options{Storage: storage, Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))})
			return j
		})
		return status, out.String()
	}
	if status, out := run(""); status != 0 {
		t.Fatal(out)
	}
	if status, out := run("-drop-state nosuch"); status != 0 || !strings.Contains(out, `nothing of the name \"nosuch\"`) {
		t.Errorf("status %d:\n%s", status, out)
	}
	if status, out := run("-drop-state account"); status != 0 || !strings.Contains(out, "state=account") || !strings.Contains(out, "it is kept") {
		t.Errorf("status %d:\n%s", status, out)
	}
}
