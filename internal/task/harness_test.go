package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/internal/transport"
)

var epoch = checkpoint.Epoch{Generation: 3, Attempt: 1}

// world is what a test drives by hand: a clock that stands still, an executor
// whose work the test runs, and a coordinator that only listens.
type world struct {
	t   *testing.T
	now int64
	// held keeps work from being run by settle.
	held bool
	work []func(context.Context)

	ready    []checkpoint.SubtaskID
	acks     []checkpoint.Ack
	declines []checkpoint.Decline
	ended    []checkpoint.SubtaskID
	failed   []error
	reserves []uint64
	reserved [][]operator.Reservation

	tasks []*Task
}

func (w *world) Now() int64                 { return w.now }
func (w *world) Go(f func(context.Context)) { w.work = append(w.work, f) }
func (w *world) Packer(checkpoint.ID) *statefile.Packer {
	return statefile.NewPacker(context.Background(), nil, statefile.Options{})
}

func (w *world) Ready(s checkpoint.SubtaskID, _ checkpoint.Epoch) { w.ready = append(w.ready, s) }
func (w *world) Ack(a checkpoint.Ack)                             { w.acks = append(w.acks, a) }
func (w *world) Decline(d checkpoint.Decline)                     { w.declines = append(w.declines, d) }
func (w *world) Ended(s checkpoint.SubtaskID, _ checkpoint.Epoch) { w.ended = append(w.ended, s) }
func (w *world) Failed(_ checkpoint.SubtaskID, _ checkpoint.Epoch, err error) {
	w.failed = append(w.failed, err)
}
func (w *world) Reserve(_ checkpoint.SubtaskID, _ checkpoint.Epoch, token uint64, r []operator.Reservation) {
	w.reserves = append(w.reserves, token)
	w.reserved = append(w.reserved, r)
}

// runWork runs what the executor was given so far.
func (w *world) runWork() bool {
	work := w.work
	w.work = nil
	for _, f := range work {
		f(context.Background())
	}
	return len(work) > 0
}

// settle steps all tasks, and runs the executor's work unless it is held, until
// nothing happens any more.
func (w *world) settle() {
	w.t.Helper()
	for range 100000 {
		worked := false
		for _, t := range w.tasks {
			worked = t.Step().Worked || worked
		}
		if !w.held {
			worked = w.runWork() || worked
		}
		if !worked {
			return
		}
	}
	w.t.Fatal("the tasks never settle")
}

// stepAll steps one task until it has nothing to do, without the executor.
func stepAll(t *Task) {
	for t.Step().Worked {
	}
}

func (w *world) ackOf(id checkpoint.ID, s checkpoint.SubtaskID) *checkpoint.Ack {
	for i := range w.acks {
		if w.acks[i].ID == id && w.acks[i].Subtask == s {
			return &w.acks[i]
		}
	}
	return nil
}

// trigger is what the coordinator sends to sources.
func trigger(id checkpoint.ID) checkpoint.Trigger {
	return checkpoint.Trigger{Barrier: checkpoint.Barrier{ID: id}, Epoch: epoch}
}

// numbers is a reader that returns what the test has put in.
type numbers struct {
	split  string
	at     int64
	queue  []int
	ended  bool
	most   int // records of one poll; 0: as many as asked for
	closed int
	avail  chan struct{}
}

func (r *numbers) Add(s connector.Split) error {
	r.split, r.at = s.ID, s.Next.N
	return nil
}

func (r *numbers) Poll(b *connector.Batch[int], max int) (string, connector.Offset, error) {
	if r.most > 0 {
		max = min(max, r.most)
	}
	n := min(max, len(r.queue))
	b.Values = append(b.Values, r.queue[:n]...)
	r.queue = r.queue[n:]
	r.at += int64(n)
	switch {
	case len(r.queue) == 0 && r.ended:
		return r.split, connector.Offset{N: r.at}, io.EOF
	case n == 0:
		return "", connector.Offset{}, connector.ErrEmpty
	}
	return r.split, connector.Offset{N: r.at}, nil
}

func (r *numbers) Available() <-chan struct{} { return r.avail }
func (r *numbers) Close() error               { r.closed++; return nil }

// put makes n records available: k, k+1, ...
func (r *numbers) put(k, n int) {
	for i := range n {
		r.queue = append(r.queue, k+i)
	}
}

func (r *numbers) open(context.Context, connector.Instance) (connector.Reader[int], error) {
	return r, nil
}

// counter is a stand-in for a stateful operator: it counts what it sees, and
// its snapshot says so in a list.
type counter struct {
	operator.Base
	name string
	sum  []int
	out  operator.Output[int]

	log       []string // calls
	fail      error    // of the next Snapshot
	failWrite error
	panicOn   int
	in        int
	opened    func(rt *operator.Runtime)
}

func (c *counter) Open(rt *operator.Runtime) error {
	c.log = append(c.log, "open")
	if c.opened != nil {
		c.opened(rt)
	}
	return nil
}

func (c *counter) Process(r *element.Run[int]) error {
	for _, v := range r.Values {
		c.in = v
		if c.panicOn != 0 && v == c.panicOn {
			panic(errors.New("it is a bad number"))
		}
		c.sum = append(c.sum, v)
	}
	c.in = 0
	c.out.Run.Values = append(c.out.Run.Values, r.Values...)
	return c.out.Flush()
}

func (c *counter) Watermark(t int64) error { return c.out.Watermark(t) }

func (c *counter) Where() (string, string) {
	if c.in == 0 {
		return c.name, ""
	}
	return c.name, fmt.Sprintf("record %d", c.in)
}

func (c *counter) Finish() error { c.log = append(c.log, "finish"); return nil }
func (c *counter) Close() error  { c.log = append(c.log, "close"); return nil }

func (c *counter) Complete(id checkpoint.ID) error {
	c.log = append(c.log, fmt.Sprint("complete ", id))
	return nil
}

func (c *counter) Abort(id checkpoint.ID) error {
	c.log = append(c.log, fmt.Sprint("abort ", id))
	return nil
}

func (c *counter) Committed(id checkpoint.ID) error {
	c.log = append(c.log, fmt.Sprint("committed ", id))
	return nil
}

type counted struct {
	c   *counter
	n   int
	err error
}

func (c *counter) Snapshot(b checkpoint.Barrier) (operator.Snapshot, error) {
	c.log = append(c.log, fmt.Sprint("snapshot ", b.ID))
	if err := c.fail; err != nil {
		c.fail = nil
		return nil, err
	}
	err := c.failWrite
	c.failWrite = nil
	return &counted{c, len(c.sum), err}, nil
}

func (s *counted) Write(ctx context.Context, _ *statefile.Packer) (checkpoint.OperatorAck, error) {
	if s.err != nil {
		return checkpoint.OperatorAck{}, s.err
	}
	if err := ctx.Err(); err != nil {
		return checkpoint.OperatorAck{}, err
	}
	return checkpoint.OperatorAck{Operator: s.c.name, States: []checkpoint.StateAck{{State: "n", Entries: int64(s.n), Bytes: int64(8 * s.n)}}}, nil
}

func (s *counted) Release() { s.c.log = append(s.c.log, "release") }

// writer is a sink's writer that remembers.
type writer struct {
	wrote    []int
	prepared []checkpoint.ID
	closed   int
	fail     error
}

func (w *writer) Write(_ context.Context, b connector.Batch[int]) error {
	if w.fail != nil {
		return w.fail
	}
	w.wrote = append(w.wrote, b.Values...)
	return nil
}

func (w *writer) Prepare(_ context.Context, id connector.CheckpointID) ([]connector.Committable, error) {
	if w.fail != nil {
		return nil, w.fail
	}
	w.prepared = append(w.prepared, checkpoint.ID(id))
	return []connector.Committable{{ID: fmt.Sprintf("t%d", id), Data: []byte{byte(len(w.wrote))}}}, nil
}

func (w *writer) Close() error { w.closed++; return nil }

func (w *writer) open(context.Context, connector.Instance) (connector.Writer[int], error) {
	return w, nil
}

// pipeline is source -> hash edge -> counter -> sink, with so many subtasks.
type pipeline struct {
	*world
	readers  []*numbers
	sources  []*Task
	counters []*counter
	writers  []*writer
	keyed    []*Task
	rings    [][]*transport.Ring // by source, by keyed
}

func sourceID(i int) checkpoint.SubtaskID { return checkpoint.SubtaskID{Vertex: "numbers", Index: i} }
func keyedID(i int) checkpoint.SubtaskID  { return checkpoint.SubtaskID{Vertex: "count", Index: i} }

type shape struct {
	sources, keyed, capacity, batch int
	mode                            checkpoint.Mode
	options                         Options
	rate                            int64
}

func newPipeline(t *testing.T, s shape) *pipeline {
	t.Helper()
	if s.mode == 0 {
		s.mode = checkpoint.ExactlyOnce
	}
	if s.capacity == 0 {
		s.capacity = 8
	}
	p := &pipeline{world: &world{t: t, now: 1}}
	p.rings = make([][]*transport.Ring, s.sources)
	for i := range s.sources {
		for range s.keyed {
			p.rings[i] = append(p.rings[i], transport.NewRing(s.capacity))
		}
	}
	for i := range s.sources {
		r := &numbers{}
		var outs []operator.Channel
		for _, ring := range p.rings[i] {
			outs = append(outs, ring)
		}
		e := operator.NewEdge[int](operator.EdgeConfig{Name: "numbers -> count", Kind: graph.Hash, Hash: hashInts, Outs: outs, Batch: s.batch})
		made := operator.NewSource(operator.SourceConfig[int]{Name: "numbers", Reader: r.open, Outs: []any{e.Input()}, Rate: s.rate})
		task := p.add(Config{
			ID: sourceID(i), Instance: connector.Instance{Subtask: i, Parallelism: s.sources},
			Ops: []Op{{Name: "numbers", Op: made.Op}}, Edges: []operator.EdgeWriter{e},
			Mode: s.mode, Options: s.options,
		})
		task.Deliver(AddSplits{[]checkpoint.Split{{ID: fmt.Sprint("split-", i)}}})
		task.Deliver(NoMoreSplits{})
		p.readers, p.sources = append(p.readers, r), append(p.sources, task)
	}
	for k := range s.keyed {
		wr := &writer{}
		sink := operator.NewSink(operator.SinkConfig[int]{Name: "out", Writer: wr.open})
		c := &counter{name: "count", out: operator.NewOutput[int]([]any{sink.Entries[0].Input()})}
		var inputs []Input
		for i := range s.sources {
			inputs = append(inputs, Input{Ring: p.rings[i][k], From: sourceID(i)})
		}
		task := p.add(Config{
			ID: keyedID(k), Instance: connector.Instance{Subtask: k, Parallelism: s.keyed},
			Ops:     []Op{{Name: "count", Op: c}, {Name: "out", Op: sink.Op}},
			Entries: []operator.Entry{operator.NewEntry[int](c)}, Inputs: inputs,
			Mode: s.mode, Options: s.options,
		})
		p.counters, p.writers, p.keyed = append(p.counters, c), append(p.writers, wr), append(p.keyed, task)
	}
	return p
}

func (w *world) add(cfg Config) *Task {
	w.t.Helper()
	cfg.Epoch, cfg.Lead, cfg.Exec, cfg.Packers, cfg.Now = epoch, w, w, w, w.Now
	t, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.tasks = append(w.tasks, t)
	return t
}

var hashInts = func(seed uint64) (func(int) uint64, error) { return keyhash.For[int](seed) }

func (p *pipeline) triggerSources(id checkpoint.ID) {
	for _, s := range p.sources {
		s.Deliver(trigger(id))
	}
}

func (p *pipeline) all(m Mail) {
	for _, t := range p.tasks {
		t.Deliver(m)
	}
}

// mustBeFine fails the test if an attempt failed.
func (w *world) mustBeFine() {
	w.t.Helper()
	for _, err := range w.failed {
		w.t.Fatalf("failed: %v", err)
	}
}
