package powerloss

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/storage/dir"
	"github.com/staunchdev/staunch/storage/dir/dirtest"
)

// The second process has some checkpoints too, in little time.
const (
	secondRate     = 20_000
	secondInterval = 5 * time.Millisecond
)

// TestPowerLossAfterKill kills the recorded job after calls, starts it again on
// what is visible then, which need not be durable, and loses the power after
// calls of the second process. A third start must be restored from a checkpoint
// not older than the last that either was told of, and end exact.
func TestPowerLossAfterKill(t *testing.T) {
	r := newSeed(t)
	in := writeInput(t, r, 1500, 500, 8, 4, 2, 1)
	first := record(t, in)
	kills, prefixes := chooseKills(r, first), 12
	if *killFlag < 0 || *killFlag > 100 {
		prefixes = 24
	}
	memory := memoryDir(t)
	pairs, images, faults := 0, 0, 0
	different := map[[32]byte]staunch.CheckpointID{}
	for _, k := range kills {
		second := recordAfterKill(t, in, first, k, filepath.Join(memory, "second"))
		for _, n := range choosePrefixes(r, second, k, prefixes) {
			pairs++
			after := promisesOf(second.Notes(n))
			for name, choice := range map[string]dirtest.Choice{
				"nothing unsynced is left":         dirtest.DropAll,
				"only the second's names are left": second.Since(k),
				"names without contents":           dirtest.EntriesOnly,
				"some, torn":                       dirtest.Random(r),
			} {
				images++
				path := filepath.Join(memory, fmt.Sprint(images))
				if err := second.WriteImage(path, n, choice); err != nil {
					t.Fatal(err)
				}
				if _, err := lose(t.Context(), in, path, after, different); err != nil {
					t.Errorf("killed after call %d of %d (%s), power lost after call %d of %d (%s), %s: %v", k, first.Len(), first.String(max(k-1, 0)),
						n, second.Len(), second.String(max(n-1, 0)), name, err)
					if faults++; faults > 20 || errors.Is(err, errStuck) {
						t.Fatal("and so on")
					}
				}
				os.RemoveAll(path)
			}
		}
	}
	t.Logf("accept: %d pairs of a kill (after %d of %d calls) and a later loss of power, %d images, %d of them different",
		pairs, len(kills), first.Len()+1, images, len(different))
}

// chooseKills takes all kills, or some: half of them right after a name was
// made, when it is seen and not durable.
func chooseKills(r *rand.Rand, rec *dirtest.Recorder) []int {
	kills := r.Perm(rec.Len() + 1)
	many := *killFlag
	switch {
	case many < 0:
		return kills
	case many == 0 && testing.Short():
		many = 4
	case many == 0:
		many = 10
	}
	fresh := slices.DeleteFunc(slices.Clone(kills), func(k int) bool { return k == 0 || !rec.Unsynced(k-1) })
	return slices.Concat(fresh[:min(many/2, len(fresh))], kills[:min(many-many/2, len(kills))])
}

// choosePrefixes takes some of the calls from on: half of them where the second
// process has just made one of its first names, its takeover among them.
func choosePrefixes(r *rand.Rand, rec *dirtest.Recorder, from, many int) []int {
	var chosen []int
	for n := from + 1; n <= rec.Len() && len(chosen) < many/2; n++ {
		if rec.Unsynced(n - 1) {
			chosen = append(chosen, n)
		}
	}
	for len(chosen) < many {
		chosen = append(chosen, from+r.IntN(rec.Len()-from+1))
	}
	return chosen
}

// recordAfterKill runs the job to its end where the first was killed after k
// calls.
func recordAfterKill(t *testing.T, in *input, first *dirtest.Recorder, k int, path string) *dirtest.Recorder {
	t.Helper()
	if err := first.WriteImage(path, k, dirtest.KeepAll); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(path)
	under, err := dir.OS(path)
	if err != nil {
		t.Fatal(err)
	}
	defer under.Close()
	disk := &recording{path, first.Killed(k, renaming{under, path})}
	// What dir.OS does for a store, whether its directory is there or not.
	if _, err := disk.rec.Lstat(checkpointsDir); err != nil {
		if err := disk.rec.Mkdir(checkpointsDir); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.rec.SyncDir("."); err != nil {
		t.Fatal(err)
	}
	runRecorded(t, in, disk, secondRate, secondInterval, -1, nil)
	disk.rec.Note(ended{})
	if missing, err := in.check(filepath.Join(path, outDir)); err != nil || missing > 0 {
		t.Fatalf("killed after call %d (%s): after the restart %d orders are missing, %v", k, first.String(max(k-1, 0)), missing, err)
	}
	return disk.rec
}
