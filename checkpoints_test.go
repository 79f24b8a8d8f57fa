package staunch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch"
)

// wordcount is a small job with a keyed state whose checkpoints are in dir.
func wordcount(dir string) func() *staunch.Job {
	return func() *staunch.Job {
		j := staunch.NewJob("wordcount")
		j.Defaults(staunch.Options{
			Storage: dir, Parallelism: 2, Checkpoint: staunch.CheckpointOptions{Interval: -1}, Log: slog.New(slog.DiscardHandler),
		})
		lines := staunch.FromSlice(j, "lines", []string{"a b a", "B c"})
		words := staunch.FlatMapSeq(lines, strings.FieldsSeq)
		staunch.To(staunch.Count(staunch.KeyBy(words, strings.ToLower), "count"), "out", newMemory[staunch.KV[string, int64]]())
		return j
	}
}

// files lists what is below dir, with its content.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			out[path] = string(b)
			return err
		}
		out[path] = ""
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCheckpointsVerb(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	build := wordcount(dir)
	if code := staunch.Command(t.Context(), nil, io.Discard, os.Stderr, build); code != 0 {
		t.Fatal("the job failed")
	}
	before := files(t, dir)
	tests := []struct {
		args string
		code int
		want []string // in the output, in this order
	}{
		{"checkpoints", 0, []string{"job wordcount in directory " + dir, "ID ", "1 ", "completed", "final", "committed", "a start would resume from checkpoint 1, triggered "}},
		{"checkpoints list", 0, []string{"resume from checkpoint 1"}},
		{"checkpoints -o json list", 0, []string{`"job": "wordcount"`, `"resume": {`, `"state_bytes": `}},
		{"checkpoints show", 0, []string{"checkpoint 1 of job wordcount", "state\n", "count", "value", "3", "operators\n", "splits\n", "lines", "subtasks\n", "count/0"}},
		{"checkpoints show 1 --barriers", 0, []string{"barriers\n", "MS AFTER FIRST"}},
		{"checkpoints show --barriers 1 -o json", 0, []string{`"after_first_ms": `}},
		{"checkpoints show 2", 1, []string{"there is no checkpoint 2 (kept: [1])"}},
		{"checkpoints verify", 0, []string{"OK ", "ckpt/", "verified: 1 checkpoint, ", ": no fault\n"}},
		{"checkpoints verify 1 -o json", 0, []string{`"faults": 0`}},
		{"checkpoints gc --dry-run", 0, []string{"would delete 0 objects"}},
		{"checkpoints --storage " + dir + "/none list", 1, []string{"no such file or directory"}},
		{"--storage " + dir + "/log checkpoints", 1, []string{"there is no checkpoint log in directory " + dir + "/log"}},
		{"checkpoints --storage mem: list", 1, []string{"there is no checkpoint log"}},
		{"checkpoints drop", 2, []string{`there is no "drop"`, "usage: checkpoints"}},
		{"checkpoints show x", 2, []string{`"x" is not the id of a checkpoint`}},
		{"checkpoints list 1", 2, []string{"too many arguments"}},
		{"checkpoints list --barriers", 2, []string{"-barriers is for show"}},
		{"checkpoints show --dry-run", 2, []string{"-dry-run is for gc"}},
		{"checkpoints -o xml", 2, []string{"text or json"}},
		{"plan -o json", 2, []string{"plan: -o belongs to checkpoints", "usage: "}},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var out bytes.Buffer
			code := staunch.Command(t.Context(), strings.Fields(tt.args), &out, &out, build)
			if code != tt.code {
				t.Errorf("exit status %d, want %d", code, tt.code)
			}
			rest := out.String()
			for _, want := range tt.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Errorf("missing %q in\n%s", want, out.String())
				}
				rest = after
			}
		})
	}
	if diff := cmp.Diff(before, files(t, dir)); diff != "" {
		t.Errorf("looking has changed the directory: %s", diff)
	}
}

// Damage on disk is named with its object, and is an exit status.
func TestCheckpointsVerifyFindsDamageOnDisk(t *testing.T) {
	dir := t.TempDir()
	build := wordcount(dir)
	if code := staunch.Command(t.Context(), nil, io.Discard, os.Stderr, build); code != 0 {
		t.Fatal("the job failed")
	}
	manifests, err := filepath.Glob(dir + "/ckpt/*")
	if err != nil || len(manifests) != 1 {
		t.Fatal(manifests, err)
	}
	b, err := os.ReadFile(manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(manifests[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := staunch.Command(t.Context(), []string{"checkpoints", "verify"}, &out, &out, build); code != 1 {
		t.Errorf("exit status %d", code)
	}
	if want := "DAMAGED  ckpt/" + filepath.Base(manifests[0]) + " (checkpoint 1): damaged: offset "; !strings.HasPrefix(out.String(), want) || !strings.HasSuffix(out.String(), ": 1 fault\n") {
		t.Errorf("%s, want %s", out.String(), want)
	}
}

// What a start that was killed has left is deleted by gc, beside the owner.
func TestCheckpointsGC(t *testing.T) {
	dir := t.TempDir()
	build := wordcount(dir)
	for range 2 { // the second start takes over; the first one's generation has ended
		if code := staunch.Command(t.Context(), nil, io.Discard, os.Stderr, build); code != 0 {
			t.Fatal("the job failed")
		}
	}
	left := dir + "/obj/L0-G1-A1-C9-00ff"
	if err := os.MkdirAll(dir+"/obj", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := staunch.Command(t.Context(), []string{"checkpoints", "gc"}, &out, &out, build); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if want := "deleted obj/L0-G1-A1-C9-00ff, 4 B: no checkpoint refers to it"; !strings.HasPrefix(out.String(), want) {
		t.Error(out.String())
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("it is still there")
	}
	if code := staunch.Command(t.Context(), []string{"checkpoints", "verify"}, &out, &out, build); code != 0 {
		t.Error(out.String())
	}
}

// The verb checkpoints looks into the storage of a job, whether it runs or not.
func ExampleCommand_checkpoints() {
	dir, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	build := wordcount(dir)
	staunch.Command(context.Background(), []string{"run"}, io.Discard, os.Stderr, build)

	var out bytes.Buffer
	staunch.Command(context.Background(), []string{"checkpoints", "list", "-o", "json"}, &out, os.Stderr, build)
	var listing struct {
		Job         string
		Resume      struct{ ID int }
		Checkpoints []struct {
			ID           int
			Status, Kind string
		}
	}
	if err := json.Unmarshal(out.Bytes(), &listing); err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range listing.Checkpoints {
		fmt.Printf("checkpoint %d of %s: %s, %s\n", c.ID, listing.Job, c.Status, c.Kind)
	}
	fmt.Println("a start resumes from", listing.Resume.ID)
	fmt.Println("verify:", staunch.Command(context.Background(), []string{"checkpoints", "verify"}, io.Discard, os.Stderr, build))
	// Output:
	// checkpoint 1 of wordcount: completed, final
	// a start resumes from 1
	// verify: 0
}
