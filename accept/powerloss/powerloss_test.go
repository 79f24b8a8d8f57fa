package powerloss

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/storage/dir"
	"github.com/staunchdev/staunch/storage/dir/dirtest"
)

var (
	killFlag = flag.Int("kills", 0, "after how many calls to kill, in TestPowerLossAfterKill; negative: after each; 0: some")
	allFlag  = flag.Bool("all", false, "replay every prefix and not a sample")
	seedFlag = flag.Uint64("seed", 0, "seed of input and images; 0: by the clock. The order of the calls is the machine's")
)

// What was told to the user of the recorded runs.
type (
	told  struct{ checkpoint staunch.CheckpointID } // is complete
	ended struct{}                                  // the job, with all committed
)

// variants are what a loss of power makes of what was not synced.
func variants(r *rand.Rand) map[string]dirtest.Choice {
	return map[string]dirtest.Choice{
		"nothing unsynced is left": dirtest.DropAll,
		"everything is left":       dirtest.KeepAll,
		"names without contents":   dirtest.EntriesOnly,
		"some, torn (1)":           dirtest.Random(r),
		"some, torn (2)":           dirtest.Random(r),
	}
}

// newSeed is the seed of a test.
func newSeed(t *testing.T) *rand.Rand {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (-args -seed=%d)", seed, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// TestPowerLoss records a job that is stopped, started again, fails once, and
// ends. Then it loses the power after the calls, all of them or a sample, and
// starts the job on what is left: it must be restored from a checkpoint not
// older than the last that was told, and end exact.
func TestPowerLoss(t *testing.T) {
	r := newSeed(t)
	in := writeInput(t, r, 1500, 500, 8, 4, 2, 1)
	rec := record(t, in)

	prefixes := r.Perm(rec.Len() + 1)
	how := "all of them"
	if !*allFlag {
		n := 50
		if testing.Short() {
			n = 6
		}
		prefixes = prefixes[:min(n, len(prefixes))]
		how = "a sample"
	}
	memory := memoryDir(t)
	images, faults, resumed := 0, 0, 0
	different := map[[32]byte]staunch.CheckpointID{}
	for _, n := range prefixes {
		after := promisesOf(rec.Notes(n))
		for name, choice := range variants(r) {
			images++
			path := filepath.Join(memory, fmt.Sprint(images))
			if err := rec.WriteImage(path, n, choice); err != nil {
				t.Fatal(err)
			}
			from, err := lose(t.Context(), in, path, after, different)
			if err != nil {
				t.Errorf("power lost after call %d of %d (%s), %s: %v", n, rec.Len(), rec.String(max(n-1, 0)), name, err)
				if faults++; faults > 20 || errors.Is(err, errStuck) {
					t.Fatal("and so on")
				}
			}
			if from > 0 {
				resumed++
			}
			os.RemoveAll(path)
		}
	}
	t.Logf("accept: %d of %d prefixes (%s), %d images, %d of them different, %d resumed from a checkpoint; ledger only, SQLite is not recorded",
		len(prefixes), rec.Len()+1, how, images, len(different), resumed)
}

// recordedRate makes a recorded run last for some checkpoints.
const recordedRate = 3000

// memoryDir is a directory in memory where there is one: making thousands of
// images on a disk takes most of the time.
func memoryDir(t *testing.T) string {
	t.Helper()
	if info, err := os.Stat("/dev/shm"); err != nil || !info.IsDir() {
		return t.TempDir()
	}
	path, err := os.MkdirTemp("/dev/shm", "staunch-powerloss")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

// record runs the job over a recorded disk: with a stop and a start, and a
// failure and a restart. Where others keep the processors busy the stop may come
// so late that nothing is left to fail; then it is done again.
func record(t *testing.T, in *input) *dirtest.Recorder {
	t.Helper()
	for range 5 {
		if rec := recordOnce(t, in); rec != nil {
			return rec
		}
	}
	t.Fatal("the recorded runs were too smooth five times")
	return nil
}

func recordOnce(t *testing.T, in *input) *dirtest.Recorder {
	t.Helper()
	disk := newRecording(t)
	out := filepath.Join(disk.root, outDir)
	run := func(stopAfter int64, fail func(order) bool) staunch.Result {
		return runRecorded(t, in, disk, recordedRate, 15*time.Millisecond, stopAfter, fail)
	}
	run(4, nil)
	var processed atomic.Int64
	r := run(-1, func(order) bool { return processed.Add(1) == 400 })
	disk.rec.Note(ended{})
	if r.RestoredFrom == 0 || r.Restarts == 0 || r.Checkpoints < 3 {
		t.Logf("the recorded runs were too smooth: %+v", r)
		return nil
	}
	if missing, err := in.check(out); err != nil || missing > 0 {
		t.Fatalf("without a loss of power: %d orders are missing, %v", missing, err)
	}
	return disk.rec
}

// runRecorded runs the job over a recorded disk, to its end or until so many
// checkpoints are complete.
func runRecorded(t *testing.T, in *input, disk *recording, rate int64, interval time.Duration, stopAfter int64, fail func(order) bool) staunch.Result {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	url := storageURL(disk.root, func() (dir.FS, error) { return sub{disk.rec, checkpointsDir}, nil })
	defer disks.Delete(url)
	completed := int64(0)
	r, err := staunch.Run(ctx, newJob(in.dir, filepath.Join(disk.root, outDir), sinkDisk{r: disk}, rate, fail), staunch.Options{
		Storage: url, Parallelism: 2, Log: slog.New(slog.DiscardHandler), Restart: staunch.FixedDelay(3, time.Millisecond),
		Checkpoint: staunch.CheckpointOptions{Interval: interval, Retain: 2},
		OnEvent: func(e staunch.Event) {
			if c, ok := e.(staunch.Checkpointed); ok {
				disk.rec.Note(told{c.ID})
				if completed++; completed == stopAfter {
					stop()
				}
			}
		},
	})
	if err != nil {
		t.Fatalf("recorded run: %v", err)
	}
	return r
}

// promises are what was told up to some call.
type promises struct {
	checkpoint staunch.CheckpointID // the last that is complete
	ended      bool                 // and all is committed
}

func promisesOf(notes []any) (n promises) {
	for _, note := range notes {
		switch note := note.(type) {
		case told:
			n.checkpoint = note.checkpoint
		case ended:
			n.ended = true
		}
	}
	return n
}

// patience is how long a start on an image may take. Most take some
// milliseconds.
const patience = 20 * time.Second

// withPatience ends a context after patience, in which the time does not count
// that this process itself stood still: a ticker drops the ticks of it.
func withPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		const ticks = 100
		t := time.NewTicker(patience / ticks)
		defer t.Stop()
		for range ticks {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
		stop()
	}()
	return ctx, stop
}

var errStuck = errors.New("stuck")

// lose starts the job on an image and lets it end. Equal images are run once.
func lose(ctx context.Context, in *input, path string, after promises, done map[[32]byte]staunch.CheckpointID) (from staunch.CheckpointID, err error) {
	out := filepath.Join(path, outDir)
	sum, err := fingerprint(path)
	if err != nil {
		return 0, err
	}
	from, known := done[sum]
	if !known {
		// What is visible was committed, so it is right before the job runs. But of
		// two checkpoints that are committed together the renames of the second may
		// be left alone.
		missing, err := in.check(out)
		if err != nil && (after.ended || !errors.Is(err, errGap)) {
			return 0, fmt.Errorf("before the restart: %w", err)
		}
		if after.ended && missing > 0 {
			return 0, fmt.Errorf("the job had ended, and %d orders are missing before the restart", missing)
		}
		url := storageURL(path, func() (dir.FS, error) {
			under, err := dir.OS(filepath.Join(path, checkpointsDir))
			return unsynced{under}, err
		})
		defer disks.Delete(url)
		// What a sink cannot commit is tried again for ever: somebody may mend it.
		ctx, stop := withPatience(ctx)
		defer stop()
		var log bytes.Buffer
		r, err := staunch.Run(ctx, newJob(in.dir, out, osFiles{}, 0, nil), staunch.Options{
			Storage: url, Parallelism: 2, Log: slog.New(slog.NewTextHandler(&log, nil)), Restart: staunch.NoRestart(),
			Checkpoint: staunch.CheckpointOptions{Interval: -1},
		})
		if err != nil {
			return 0, fmt.Errorf("restart: %w", err)
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("restart: not ended after %v: ...%s: %w", patience, log.Bytes()[max(0, log.Len()-500):], errStuck)
		}
		missing, err = in.check(out)
		if err != nil {
			return 0, fmt.Errorf("after the restart: %w", err)
		}
		if missing > 0 {
			return 0, fmt.Errorf("after the restart: %d orders are lost", missing)
		}
		from = r.RestoredFrom
		done[sum] = from
	}
	if from < after.checkpoint {
		return from, fmt.Errorf("checkpoint %d was told to be complete, but the job was restored from %d", after.checkpoint, from)
	}
	return from, nil
}

// fingerprint is a hash of all names and contents below path.
func fingerprint(path string) (sum [32]byte, err error) {
	h := sha256.New()
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, err2 := filepath.Rel(path, name)
		fmt.Fprintf(h, "%s %d\n%s", rel, len(b), b)
		return errors.Join(err, err2)
	})
	h.Sum(sum[:0])
	return sum, err
}
