package task

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// live is an executor of goroutines and a coordinator that forwards what it is
// told to a channel.
type live struct {
	ctx    context.Context
	work   sync.WaitGroup
	events chan any
}

func (l *live) Go(f func(context.Context)) { l.work.Go(func() { f(l.ctx) }) }

func (l *live) Ready(s checkpoint.SubtaskID, _ checkpoint.Epoch) { l.events <- s }
func (l *live) Ack(a checkpoint.Ack)                             { l.events <- a }
func (l *live) Decline(d checkpoint.Decline)                     { l.events <- d }
func (l *live) Ended(checkpoint.SubtaskID, checkpoint.Epoch)     { l.events <- "ended" }
func (l *live) Failed(_ checkpoint.SubtaskID, _ checkpoint.Epoch, err error) {
	l.events <- err
}
func (l *live) Reserve(checkpoint.SubtaskID, checkpoint.Epoch, uint64, []operator.Reservation) {}

// goLive takes a pipeline out of the test's hand.
func goLive(ctx context.Context, p *pipeline) (l *live, join func()) {
	l = &live{ctx: ctx, events: make(chan any, 1000)}
	var run sync.WaitGroup
	for _, task := range p.tasks {
		task.cfg.Lead, task.cfg.Exec = l, l
		task.cfg.Now = func() int64 { return time.Now().UnixNano() }
		run.Go(func() { task.Run(ctx) })
	}
	return l, func() { run.Wait(); l.work.Wait() }
}

func TestRunWithGoroutinesTakesConsistentCheckpoints(t *testing.T) {
	const records = 200_000
	p := newPipeline(t, shape{sources: 2, keyed: 2})
	for i, r := range p.readers {
		r.put(1+i*records, records)
		r.ended = true
	}
	l, join := goLive(t.Context(), p)
	ended, done := 0, checkpoint.ID(0)
	acks := map[checkpoint.ID][]checkpoint.Ack{}
	trigger := func(id checkpoint.ID) {
		for _, s := range p.sources {
			s.Deliver(checkpoint.Trigger{Barrier: checkpoint.Barrier{ID: id}, Epoch: epoch})
		}
	}
	next := checkpoint.ID(1)
	for ready := 0; ended < 4; {
		switch e := (<-l.events).(type) {
		case checkpoint.SubtaskID:
			if ready++; ready == 4 {
				trigger(next)
			}
		case checkpoint.Ack:
			acks[e.ID] = append(acks[e.ID], e)
			if len(acks[e.ID]) == 4 {
				done = e.ID
				next++
				p.all(checkpoint.Complete{ID: done, Epoch: epoch})
				p.all(checkpoint.Committed{ID: done, Epoch: epoch})
				if ended == 0 {
					trigger(next)
				}
			}
		case string:
			ended++
		case error:
			t.Fatal(e)
		case checkpoint.Decline:
			t.Fatalf("declined: %+v", e)
		}
	}
	p.all(Stop{})
	join()
	if n := len(p.counters[0].sum) + len(p.counters[1].sum); n != 2*records {
		t.Fatalf("%d records of %d", n, 2*records)
	}
	for id := checkpoint.ID(1); id <= done; id++ {
		var read, counted int64
		for _, a := range acks[id] {
			for _, op := range a.Operators {
				for _, sp := range op.Splits {
					read += sp.N
				}
				for _, st := range op.States {
					counted += st.Entries
				}
			}
		}
		if read != counted {
			t.Errorf("checkpoint %d: %d records read, %d counted", id, read, counted)
		}
	}
	t.Logf("%d checkpoints", done)
	for i, c := range p.counters {
		if len(p.writers[i].wrote) != len(c.sum) {
			t.Errorf("writer %d was given %d of %d", i, len(p.writers[i].wrote), len(c.sum))
		}
	}
}

func TestContextEndStopsEverything(t *testing.T) {
	p := newPipeline(t, shape{sources: 2, keyed: 2, capacity: 2})
	for _, r := range p.readers {
		r.put(1, 1_000_000)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, join := goLive(ctx, p)
	for range 4 {
		<-l.events // ready
	}
	cancel()
	join()
	for i := range p.readers {
		if p.readers[i].closed != 1 || p.writers[i].closed > 1 {
			t.Errorf("closed %d and %d times", p.readers[i].closed, p.writers[i].closed)
		}
		if n := count(p.counters[i].log, "close"); n != 1 {
			t.Errorf("operator closed %d times", n)
		}
	}
}
