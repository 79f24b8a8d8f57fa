package staunch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/casekit"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/inspect"
	"github.com/staunchdev/staunch/storage/dir"
	"github.com/staunchdev/staunch/storage/memstore"
)

// clientLog is a transactional log as one process sees it.
type clientLog struct {
	*casekit.TxLog[total]
	by      string
	commits *commitList
}

// commitList is who asked for which transactions to be committed.
type commitList struct {
	mu   sync.Mutex
	list []string
}

func (l *commitList) add(by string, cs []connector.Committable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range cs {
		l.list = append(l.list, by+" "+c.ID)
	}
}

func (l *commitList) by(who string) (ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.list {
		if id, ok := strings.CutPrefix(s, who+" "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func (c *clientLog) Commit(ctx context.Context, cs []connector.Committable) error {
	c.commits.add(c.by, cs)
	return c.TxLog.Commit(ctx, cs)
}

func (c *clientLog) Recover(ctx context.Context, i connector.Instance, cs []connector.Committable) error {
	c.commits.add(c.by, cs)
	return c.TxLog.Recover(ctx, i, cs)
}

// ended waits for an execution that must end by itself, a minute of a bubble's time.
func ended(t *testing.T, x *cluster.Execution) (cluster.Result, error) {
	t.Helper()
	select {
	case <-x.Done():
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	return x.Wait()
}

func countingJob(src connector.Source[int], sink connector.Sink[total]) *staunch.Job {
	j := staunch.NewJob("counting")
	k := staunch.KeyBy(staunch.From(j, "in", src), func(v int) int { return v })
	staunch.To(staunch.Count(k, "count"), "out", sink)
	return j
}

// A leader that was cut off while its checkpoint was on the way to the log comes
// back after another one has gone on: its append is refused by the log, it
// commits nothing and deletes nothing of the other.
//
// Red: that a slot of the log is taken was read as success.
func TestCase_I08(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, log, commits := casekit.NewStore(), casekit.NewTxLog[total](), &commitList{}
		src := casekit.NewSource(2, func(_ int, off int64) int { return int(off % 3) })
		start := func(by string, h *memstore.Store, said *casekit.Recorder) *cluster.Execution {
			x, err := staunch.StartWith(t.Context(), countingJob(src, &clientLog{log, by, commits}), quiet(staunch.Options{
				Parallelism: 2, Restart: staunch.NoRestart(), Checkpoint: staunch.CheckpointOptions{Interval: -1},
			}), func(_ *cluster.Job, o *cluster.Options) {
				o.Store, o.OnEvent, o.Owner, o.Takeover = h, said.On, by, true
			})
			if err != nil {
				t.Fatal(err)
			}
			return x
		}

		// L1 stops at the append of its checkpoint: everything else of it is done.
		var cut casekit.Gate
		var mu sync.Mutex
		var after []memstore.Op // what L1 asked of the store since it came back
		partition, back := false, false
		h1 := store.Disk.Open()
		h1.Hook = func(op memstore.Op) memstore.Outcome {
			mu.Lock()
			if partition && op.Verb == memstore.Create && strings.HasPrefix(op.Name, "log/") {
				cut.Close()
			}
			mu.Unlock()
			cut.Pass()
			mu.Lock()
			defer mu.Unlock()
			if back {
				after = append(after, op)
			}
			return memstore.Outcome{}
		}
		var said1, said2 casekit.Recorder
		l1 := start("L1", h1, &said1)
		grow := func() {
			src.Grow(0, 30)
			src.Grow(1, 30)
			synctest.Wait()
		}
		for range 3 {
			grow()
			if _, err := l1.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		grow()
		mu.Lock()
		partition = true
		mu.Unlock()
		go l1.Checkpoint(t.Context())
		synctest.Wait()
		if cut.Waiting() != 1 {
			t.Fatalf("L1 is not at its append: %d wait", cut.Waiting())
		}
		mine := len(commits.by("L1"))

		l2 := start("L2", store.Open(), &said2)
		synctest.Wait()
		grow()
		id, err := l2.Checkpoint(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()

		mu.Lock()
		partition, back = false, true
		mu.Unlock()
		cut.Open()
		if _, err := ended(t, l1); !errors.Is(err, ckptlog.ErrFenced) {
			t.Errorf("L1 ended with %v", err)
		}
		if n := len(said1.Completed()); n != 3 {
			t.Errorf("L1 says that it completed %d checkpoints, it did 3", n)
		}
		if got := commits.by("L1"); len(got) != mine {
			t.Errorf("L1 committed %q after L2 had taken over", got[mine:])
		}
		gen := casekit.All[cluster.Started](&said1)[0].Epoch.Generation
		for _, op := range after {
			if o, ok := checkpoint.ParseName(op.Name); op.Verb == memstore.Delete && (!ok || o.Epoch.Generation != gen) {
				t.Errorf("L1 came back and deleted %s", op.Name)
			}
		}

		grow()
		src.End()
		if _, err := ended(t, l2); err != nil {
			t.Fatal(err)
		}
		view, err := ckptlog.Read(t.Context(), store.Open())
		if err != nil {
			t.Fatal(err)
		}
		kept, ok := view.ByID(id)
		if !ok || kept.Epoch.Generation == gen {
			t.Errorf("checkpoint %d is %+v", id, kept)
		}
		if v, err := inspect.Verify(t.Context(), store.Open(), 0, nil); err != nil || v.Faults > 0 {
			t.Errorf("what is kept: %v %v", v.Summary(), err)
		}
		if err := exactCounts(src.All(), log.Visible()); err != nil {
			t.Error(err)
		}
	})
}

// Two runs on one directory: the second is refused, or takes over and fences
// the first. A job that was deleted and made again under its name begins anew,
// and an old owner that still lives writes nothing into it.
//
// Red: a start went on although the lock was held; a fresh start went on from
// the newest checkpoint.
func TestCase_I07(t *testing.T) {
	path := t.TempDir() + "/job"
	src := casekit.NewSource(1, func(int, int64) int { return 0 })
	type run struct {
		*cluster.Execution
		said  *casekit.Recorder
		out   *casekit.TxLog[total]
		close func()
	}
	start := func(t *testing.T, out *casekit.TxLog[total], change func(*cluster.Options)) *run {
		t.Helper()
		store, err := dir.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		r := &run{said: &casekit.Recorder{}, out: out}
		ctx, cancel := context.WithCancel(t.Context())
		r.Execution, err = staunch.StartWith(ctx, countingJob(src, out), quiet(staunch.Options{
			Parallelism: 1, Restart: staunch.NoRestart(), Checkpoint: staunch.CheckpointOptions{Interval: -1},
		}), func(_ *cluster.Job, o *cluster.Options) {
			o.Store, o.OnEvent = store, r.said.On
			o.Lock = func() (func(), error) { return store.Lock("owner") }
			change(o)
		})
		if err != nil {
			t.Fatal(err)
		}
		r.close = func() {
			cancel()
			r.Wait()
			store.Close()
		}
		return r
	}
	synctest.Test(t, func(t *testing.T) {
		out := casekit.NewTxLog[total]()
		first := start(t, out, unchanged)
		defer first.close()
		src.Grow(0, 50)
		synctest.Wait()
		if _, err := first.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := lastOf(out); got != 50 {
			t.Fatalf("count %d, want 50", got)
		}

		second := start(t, out, unchanged)
		defer second.close()
		_, err := ended(t, second.Execution)
		if owner := fmt.Sprintf("held by pid %d since ", os.Getpid()); !errors.Is(err, cluster.ErrLocked) || !strings.Contains(err.Error(), owner) || !strings.Contains(err.Error(), path) {
			t.Errorf("the second start: %v", err)
		}

		third := start(t, out, func(o *cluster.Options) { o.Takeover = true })
		defer third.close()
		synctest.Wait()
		src.Grow(0, 10)
		synctest.Wait()
		if id, err := first.Checkpoint(t.Context()); err == nil {
			t.Errorf("the first owner completed checkpoint %d after the takeover", id)
		}
		if _, err := ended(t, first.Execution); !errors.Is(err, ckptlog.ErrFenced) {
			t.Errorf("the first owner ended with %v", err)
		}
		if _, err := third.Checkpoint(t.Context()); err != nil {
			t.Errorf("the new owner: %v", err)
		}
		synctest.Wait()
		if n, got := len(first.said.Completed()), lastOf(out); n != 1 || got != 60 {
			t.Errorf("the first owner completed %d, the count is %d", n, got)
		}

		// Deleted, while its last owner still lives, and made again.
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		again := casekit.NewTxLog[total]()
		fourth := start(t, again, unchanged)
		defer fourth.close()
		synctest.Wait()
		if id, err := third.Checkpoint(t.Context()); err == nil {
			t.Errorf("the owner of the deleted job completed %d in the new one", id)
		}
		if _, err := fourth.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, from := lastOf(again), casekit.All[cluster.Started](fourth.said); got != 60 || from[0].Restored != 0 {
			t.Errorf("made again: restored %d, the count of 60 new records is %d", from[0].Restored, got)
		}
		fourth.close()

		// The same on purpose, in the same directory.
		anew := casekit.NewTxLog[total]()
		fifth := start(t, anew, func(o *cluster.Options) { o.Fresh = true })
		defer fifth.close()
		synctest.Wait()
		if _, err := fifth.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := lastOf(anew); got != 60 || slices.Max(countsOf(anew)) != 60 || len(countsOf(anew)) != 60 {
			t.Errorf("fresh: the count of 60 records is %d", got)
		}
	})
}

func countsOf(out *casekit.TxLog[total]) (ns []int64) {
	for _, kv := range out.Visible() {
		ns = append(ns, kv.Value)
	}
	return ns
}

func lastOf(out *casekit.TxLog[total]) int64 {
	ns := countsOf(out)
	if len(ns) == 0 {
		return 0
	}
	return ns[len(ns)-1]
}
