package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/staunchdev/staunch"
)

// setup is how a job is run.
type setup struct {
	mode        staunch.Guarantee
	interval    time.Duration // negative: no checkpoints but on demand
	sources     int           // subtasks; 0: one
	counters    int           // subtasks; 0: one
	inline      bool
	late        *latecomer
	pinned      bool   // measure the thread of the source, which is then its alone
	checkpoints string // directory
}

// job is a keyed count that runs.
type job[K comparable] struct {
	x      *staunch.Execution
	sink   *sink[K]
	done   chan staunch.Checkpointed
	thread *threadMeter
	stop   context.CancelFunc
	dir    string
}

// start starts a job and returns when it has seen every key, and a little more.
func start[K comparable](ctx context.Context, in input[K], s setup) (*job[K], error) {
	dir, err := os.MkdirTemp(s.checkpoints, "job-")
	if err != nil {
		return nil, err
	}
	k := &job[K]{sink: &sink[K]{}, thread: &threadMeter{on: s.pinned}, done: make(chan staunch.Checkpointed, 1024), dir: dir}
	sources, counters := max(s.sources, 1), max(s.counters, 1)

	j := staunch.NewJob("mainjob")
	records := staunch.From(j, "in", &source[K]{in: in, splits: sources, late: s.late, thread: k.thread}, staunch.Parallelism(sources))
	keyed := staunch.KeyBy(records, func(k K) K { return k })
	counts := staunch.Count(keyed, "count", staunch.Parallelism(counters))
	staunch.To(counts, "out", k.sink, staunch.Parallelism(counters))

	ctx, k.stop = context.WithCancel(ctx)
	k.x, err = staunch.Start(ctx, j, staunch.Options{
		Storage: filepath.Join(dir, "checkpoints"), Mode: s.mode, Parallelism: 1,
		Checkpoint: staunch.CheckpointOptions{Interval: s.interval, Inline: s.inline},
		Restart:    staunch.RestartPolicy{Attempts: -1},
		Log:        slog.New(slog.DiscardHandler),
		OnEvent: func(e staunch.Event) {
			switch e := e.(type) {
			case staunch.Checkpointed:
				select {
				case k.done <- e:
				default: // nobody counts them
				}
			case staunch.CheckpointFailed:
				fmt.Fprintf(os.Stderr, "checkpoint %d failed: %v\n", e.ID, e.Reason)
			}
		},
	})
	if err != nil {
		k.stop()
		return nil, err
	}
	for warm := int64(len(in.each)) + loopRecords/4; k.sink.n.Load() < warm; {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
		if s.mode == staunch.AtMostOnce && k.sink.n.Load() >= int64(len(in.each)) {
			break // it may be slow
		}
	}
	return k, nil
}

// close stops the job and deletes what it has stored.
func (k *job[K]) close() error {
	k.stop()
	_, err := k.x.Wait()
	if removed := os.RemoveAll(k.dir); err == nil {
		err = removed
	}
	return err
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// rate is what one round has measured.
type rate struct {
	perSecond   float64
	nanos       float64       // of user time of the whole process, a record
	allocs      float64       // a record
	checkpoints float64       // a second
	taking      time.Duration // median of those checkpoints
	bytes       int64         // of the last one
	thread      float64       // nanoseconds of processor time of the source's thread, a record
}

// meter measures from its making until read is called.
type meter struct {
	records func() int64
	thread  func() (nanos, records int64) // nil: not known
	n       int64
	spent   int64 // of the thread, and
	polled  int64 // records it had read
	at      time.Time
	user    time.Duration
	mem     runtime.MemStats
}

func newMeter(records func() int64, thread func() (int64, int64)) *meter {
	m := &meter{records: records, thread: thread}
	runtime.ReadMemStats(&m.mem)
	if thread != nil {
		m.spent, m.polled = thread()
	}
	m.n, m.at, m.user = records(), time.Now(), userTime()
	return m
}

func (m *meter) read() rate {
	n := float64(m.records() - m.n)
	took, user := time.Since(m.at), userTime()-m.user
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	r := rate{
		perSecond: n / took.Seconds(), nanos: float64(user.Nanoseconds()) / n,
		allocs: float64(mem.Mallocs-m.mem.Mallocs) / n,
	}
	if m.thread != nil {
		if spent, polled := m.thread(); polled > m.polled {
			r.thread = float64(spent-m.spent) / float64(polled-m.polled)
		}
	}
	return r
}

// measure runs a job for about d. With checkpoints the time begins and ends
// with the end of one, so that it holds whole ones only.
func measure[K comparable](ctx context.Context, in input[K], s setup, d time.Duration) (rate, error) {
	runtime.GC()
	k, err := start(ctx, in, s)
	if err != nil {
		return rate{}, err
	}
	defer k.stop()
	if s.interval < 0 {
		m := newMeter(k.sink.n.Load, k.thread.read)
		if err := pause(ctx, d); err != nil {
			return rate{}, err
		}
		r := m.read()
		return r, k.close()
	}
	// The warming up may have left ends behind, and a checkpoint in which every
	// page was new.
	for len(k.done) > 0 {
		<-k.done
	}
	var took []time.Duration
	var bytes int64
	next := func() error {
		select {
		case e := <-k.done:
			took, bytes = append(took, e.Duration), e.Bytes
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return fmt.Errorf("no checkpoint within a minute")
		}
	}
	if err := next(); err != nil {
		return rate{}, err
	}
	m := newMeter(k.sink.n.Load, k.thread.read)
	took = took[:0]
	for time.Since(m.at) < d-s.interval/2 {
		if err := next(); err != nil {
			return rate{}, err
		}
	}
	r := m.read()
	r.checkpoints, r.taking, r.bytes = float64(len(took))/time.Since(m.at).Seconds(), median(took), bytes
	return r, k.close()
}
