package staunch_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/inspect"
	"github.com/staunchdev/staunch/storage/dir"
)

// mortal is a file system of a process that can be killed at a byte of a write
// or at a read, and of a disk that can be full.
type mortal struct {
	dir.FS
	mu     sync.Mutex
	dead   bool
	full   bool
	locks  []func()
	writes int    // bytes that may still be written; negative: any number
	reads  string // prefix of names at whose opening the process dies; "": none
}

var errKilled = errors.New("the process is dead")

// die ends the process: nothing it does has an effect any more, its locks are free.
func (m *mortal) die() error {
	m.dead = true
	for _, free := range m.locks {
		free()
	}
	m.locks = nil
	return errKilled
}

func (m *mortal) call(f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errKilled
	}
	return f()
}

func (m *mortal) isDead() bool { return m.call(func() error { return nil }) != nil }

func (m *mortal) set(f func()) { m.call(func() error { f(); return nil }) }

func (m *mortal) Create(name string) (f dir.File, err error) {
	err = m.call(func() error { f, err = m.FS.Create(name); return err })
	return &mortalFile{f, m}, err
}

func (m *mortal) Open(name string) (f fs.File, err error) {
	err = m.call(func() error {
		if m.reads != "" && strings.HasPrefix(name, m.reads) {
			return m.die()
		}
		f, err = m.FS.Open(name)
		return err
	})
	return f, err
}

func (m *mortal) Link(old, name string) error {
	return m.call(func() error { return m.FS.Link(old, name) })
}

func (m *mortal) Remove(name string) error { return m.call(func() error { return m.FS.Remove(name) }) }

func (m *mortal) Lock(name, text string) (free func(), err error) {
	err = m.call(func() error {
		if free, err = m.FS.Lock(name, text); err == nil {
			m.locks = append(m.locks, free)
		}
		return err
	})
	return free, err
}

type mortalFile struct {
	dir.File
	m *mortal
}

func (f *mortalFile) Write(p []byte) (n int, err error) {
	err = f.m.call(func() error {
		switch {
		case f.m.full:
			return &fs.PathError{Op: "write", Path: "object", Err: syscall.ENOSPC}
		case f.m.writes >= 0 && f.m.writes < len(p):
			f.File.Write(p[:f.m.writes])
			return f.m.die()
		}
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *mortalFile) Sync() error { return f.m.call(f.File.Sync) }

// mortalStore tells the file system which object is being created.
type mortalStore struct {
	*dir.Store
	m *mortal
	// twentieths of the next object with the prefix are written before death.
	prefix     string
	twentieths int
}

func (s *mortalStore) Create(ctx context.Context, name string, b []byte) error {
	s.m.set(func() {
		if s.prefix != "" && strings.HasPrefix(name, s.prefix) {
			s.m.writes = len(b) * s.twentieths / 20
		}
	})
	return s.Store.Create(ctx, name, b)
}

// diskJob is a counting job in a directory, run again and again.
type diskJob struct {
	path string
	src  *casekit.Source[int]
	out  *casekit.TxLog[total]
}

func newDiskJob(t *testing.T, keys int) *diskJob {
	return &diskJob{t.TempDir(), casekit.NewSource(1, func(_ int, off int64) int { return int(off) % keys }), casekit.NewTxLog[total]()}
}

// diskRun is one process of a diskJob, inside a bubble.
type diskRun struct {
	*cluster.Execution
	said   *casekit.Recorder
	store  *mortalStore
	m      *mortal
	cancel context.CancelFunc
}

func (d *diskJob) start(t *testing.T, prepare func(*mortal)) *diskRun {
	t.Helper()
	under, err := dir.OS(d.path)
	if err != nil {
		t.Fatal(err)
	}
	r := &diskRun{said: &casekit.Recorder{}, m: &mortal{FS: under, writes: -1}}
	prepare(r.m)
	store, err := dir.Open(d.path, dir.WithFS(r.m))
	if err != nil {
		t.Fatal(err)
	}
	r.store = &mortalStore{Store: store, m: r.m}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	r.Execution, err = staunch.StartWith(ctx, countingJob(d.src, d.out), quiet(staunch.Options{
		Parallelism: 1, Checkpoint: staunch.CheckpointOptions{Interval: -1}, Restart: staunch.FixedDelay(3, time.Millisecond),
	}), func(_ *cluster.Job, o *cluster.Options) {
		o.Store, o.OnEvent = r.store, r.said.On
		o.Lock = func() (func(), error) { return store.Lock("owner") }
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func alive(*mortal) {}

// feed makes n records and takes a checkpoint when they are processed.
func (r *diskRun) feed(t *testing.T, d *diskJob, n int64) (checkpoint.ID, error) {
	t.Helper()
	d.src.Grow(0, n)
	synctest.Wait()
	id, err := r.Checkpoint(t.Context())
	synctest.Wait()
	return id, err
}

// gone waits for a process that was killed.
func (r *diskRun) gone(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if !r.m.isDead() {
		t.Error("the process was not killed")
		r.m.set(func() { r.m.die() })
	}
	r.cancel()
	r.Wait()
	r.m.FS.Close()
}

// finish lets a run come to its end, and looks at what all of them have left.
func (r *diskRun) finish(t *testing.T, d *diskJob, from checkpoint.ID) {
	t.Helper()
	synctest.Wait()
	if starts := casekit.All[cluster.Started](r.said); len(starts) != 1 || starts[0].Restored != from {
		t.Errorf("started %+v, want one attempt from %d", starts, from)
	}
	d.src.End()
	if _, err := ended(t, r.Execution); err != nil {
		t.Fatal(err)
	}
	if err := exactCounts(d.src.All(), d.out.Visible()); err != nil {
		t.Error(err)
	}
	if v, err := inspect.Verify(t.Context(), r.store, 0, nil); err != nil || v.Faults > 0 {
		t.Errorf("what is kept is damaged: %+v, %v", v, err)
	}
	if g, err := inspect.Collect(t.Context(), r.store, true); err != nil || len(g.Deleted) > 0 {
		t.Errorf("left over: %+v, %v", g, err)
	}
	r.store.Close()
	left, err := os.ReadDir(d.path + "/.tmp")
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// Killed at any byte of what makes a checkpoint, manifest or record: it does not
// exist, the one before is the newest, and nothing of it is left behind.
//
// Red: objects were written under their own name.
func TestCase_D09(t *testing.T) {
	step := 2 // twenty bytes, half of them of the manifest
	if testing.Short() {
		step = 6
	}
	for _, prefix := range []string{checkpoint.ManifestPrefix, "log/"} {
		for i := 0; i < 20; i += step {
			synctest.Test(t, func(t *testing.T) {
				d := newDiskJob(t, 3)
				r := d.start(t, alive)
				if _, err := r.feed(t, d, 20); err != nil {
					t.Fatal(err)
				}
				r.m.set(func() { r.store.prefix, r.store.twentieths = prefix, i })
				d.src.Grow(0, 20)
				synctest.Wait()
				go r.Checkpoint(t.Context())
				r.gone(t)

				reader, err := dir.OpenReader(d.path)
				if err != nil {
					t.Fatal(err)
				}
				l, err := inspect.List(t.Context(), reader, time.Now())
				if err != nil || l.Resume == nil || l.Resume.ID != 1 {
					t.Errorf("%s, %d/20 written: resume from %+v, %v", prefix, i, l, err)
				}
				reader.Close()
				d.start(t, alive).finish(t, d, 1)
			})
			if t.Failed() {
				t.Fatalf("%s, %d/20 written", prefix, i)
			}
		}
	}
}

// A full disk fails the checkpoint and nothing else, and is forgotten once there
// is room; a start that is killed again and again while it restores leaves
// nothing in the way of the next. State on local disks is not in this version.
//
// Red: a full disk poisoned the store; a final checkpoint that failed in a
// subtask was tried again without a pause.
func TestCase_I12(t *testing.T) {
	const keys = 600 // more than a manifest takes in
	t.Run("full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newDiskJob(t, keys)
			r := d.start(t, alive)
			first, err := r.feed(t, d, 2*keys)
			if err != nil {
				t.Fatal(err)
			}
			r.m.set(func() { r.m.full = true })
			for range 2 {
				if id, err := r.feed(t, d, keys); err == nil || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
					t.Errorf("checkpoint %d on a full disk: %v", id, err)
				}
			}
			if n := d.src.Polled(0); n != 4*keys {
				t.Errorf("the job has read %d records of %d", n, 4*keys)
			}
			if v, err := inspect.Verify(t.Context(), r.store, first, nil); err != nil || v.Faults > 0 {
				t.Errorf("checkpoint %d meanwhile: %+v, %v", first, v, err)
			}
			r.m.set(func() { r.m.full = false })
			if _, err := r.feed(t, d, keys); err != nil {
				t.Errorf("with room again: %v", err)
			}
			if n := len(casekit.All[cluster.Restarting](r.said)); n > 0 {
				t.Errorf("%d restarts", n)
			}

			// Full at the end: the final checkpoint is tried again, not in a loop.
			r.m.set(func() { r.m.full = true })
			failed := len(r.said.Failed())
			d.src.Grow(0, keys)
			d.src.End()
			time.Sleep(5 * time.Second) // of the bubble
			if n := len(r.said.Failed()) - failed; n == 0 || n > 20 {
				t.Errorf("the final checkpoint failed %d times in 5 s", n)
			}
			r.m.set(func() { r.m.full = false })
			r.finish(t, d, 0)
		})
	})
	t.Run("killed while it restores", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newDiskJob(t, keys)
			r := d.start(t, alive)
			id, err := r.feed(t, d, 2*keys)
			if err != nil {
				t.Fatal(err)
			}
			r.m.set(func() { r.m.die() })
			r.gone(t)
			before := objects(t, d.path)
			for range 5 {
				d.start(t, func(m *mortal) { m.reads = checkpoint.ObjectPrefix }).gone(t)
			}
			if after := objects(t, d.path); !slices.Equal(before, after) {
				t.Errorf("objects %v became %v", before, after)
			}
			d.start(t, alive).finish(t, d, id)
		})
	})
}

// objects are the objects and manifests in a directory.
func objects(t *testing.T, path string) (names []string) {
	t.Helper()
	for _, sub := range []string{"obj", "ckpt"} {
		es, err := os.ReadDir(path + "/" + sub)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			names = append(names, e.Name())
		}
	}
	return names
}
