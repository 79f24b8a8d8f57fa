package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

// The job:
//
//	source a ──┐hash                ┌─ ledger (sink)
//	source b ──┼──── account ───────┤hash
//	[source c]─┘                    └──── [bucket ── totals (sink)]
//
// Every sink is transactional. The third source ends early.

// builder puts the graph together.
type builder struct {
	w     *world
	p     *process
	g     graph.Graph
	specs []operator.Spec
	hash  []any
}

func (b *builder) node(n graph.Node, s operator.Spec) int {
	n.Named = true
	s.Meta.Name, s.Meta.Kind, s.Meta.Key, s.Meta.States = n.Name, n.Kind, n.Key, n.States
	b.g.Nodes = append(b.g.Nodes, n)
	b.specs = append(b.specs, s)
	return len(b.g.Nodes) - 1
}

func (b *builder) edge(from, to int, kind graph.EdgeKind, hash any) {
	b.g.Edges = append(b.g.Edges, graph.Edge{From: from, To: to, Kind: kind})
	b.hash = append(b.hash, hash)
}

// job makes the job as process p runs it.
func (w *world) job(p *process) cluster.Job {
	b := &builder{w: w, p: p, g: graph.Graph{Job: "sim"}}
	parallel := func(now, most int) int {
		if w.rescale && w.started > 1 || now == 0 {
			return 1 + w.rng.IntN(most)
		}
		return now
	}
	accounts := parallel(w.accounts, 3)
	account := -1
	var sources []int
	for s := range w.sources {
		sources = append(sources, b.source(s, parallel(0, 2)))
	}
	account = keyedNode(b, "account", accounts, func(o order) uint32 { return o.Key }, func(o order) order { return o }, enter)
	for _, s := range sources {
		b.edge(s, account, graph.Hash, hashBy(func(o order) uint32 { return o.Key }))
	}
	ledger := sinkNode(b, "ledger", b.sinkParallelism(accounts), func(l line) entry { return entry{of: 'l', line: l} })
	b.edge(account, ledger, graph.Forward, nil)
	if w.stages == 2 {
		n := parallel(0, 2)
		bucket := keyedNode(b, "bucket", n, bucketOf, func(l line) order { return l.Order }, sumUp)
		b.edge(account, bucket, graph.Hash, hashBy(bucketOf))
		totals := sinkNode(b, "totals", b.sinkParallelism(n), func(t total) entry { return entry{of: 't', total: t} })
		b.edge(bucket, totals, graph.Forward, nil)
	}
	plan, err := graph.Compile(b.g, 1)
	if err != nil {
		panic(err)
	}
	return cluster.Job{Name: "sim", Plan: plan, Specs: b.specs, EdgeHash: b.hash}
}

// sinkParallelism is that of what the sink stands behind, so that the two are a
// chain, or another.
func (b *builder) sinkParallelism(before int) int {
	if b.w.rng.IntN(2) == 0 {
		return before
	}
	return 1 + b.w.rng.IntN(2)
}

func (b *builder) source(s, parallelism int) int {
	w, p := b.w, b.p
	name := string(rune('a' + s))
	return b.node(graph.Node{
		Name: name, Kind: "source", Parallelism: parallelism,
		Source: &graph.SourceInfo{Replayable: true, Bounded: true},
	}, operator.Spec{
		Make: func(outs [][]any) operator.Made {
			return w.tap(p, operator.NewSource(operator.SourceConfig[order]{
				Name: name, Outs: outs[0],
				Reader: func(context.Context, connector.Instance) (connector.Reader[order], error) {
					p.yield()
					return &reader{p: p, in: w.in}, nil
				},
			}))
		},
		Edge: []func(operator.EdgeConfig) operator.EdgeWriter{edgeOf[order](w)},
		Enumerator: func(context.Context, connector.Instance) (connector.Enumerator, error) {
			p.yield()
			all := w.in.sources[s]
			return &enumerator{p: p, all: all, known: make([]byte, len(all))}, nil
		},
	})
}

func keyedNode[In, Out any](b *builder, name string, parallelism int, keyOf func(In) uint32, orderOf func(In) order, fold func(account, In) (account, Out)) int {
	w, p := b.w, b.p
	key := codec.For[uint32]().Schema()
	d := stateDecl()
	return b.node(graph.Node{
		Name: name, Kind: "process", Parallelism: parallelism, Keyed: true, Stateful: true, Key: &key, KeyType: "uint32",
		States: []checkpoint.StateMeta{{Name: d.Name, Kind: d.Kind, Value: d.ValueSchema}},
	}, operator.Spec{
		Make: func(outs [][]any) operator.Made {
			o := &keyed[In, Out]{w: w, name: name, keyOf: keyOf, orderOf: orderOf, fold: fold, out: operator.NewOutput[Out](outs[0])}
			if w.rng.IntN(3) == 0 {
				o.cost = w.recordCost
			}
			return w.tap(p, operator.Made{Op: o, Entries: []operator.Entry{operator.NewEntry[In](o)}})
		},
		Edge: []func(operator.EdgeConfig) operator.EdgeWriter{edgeOf[Out](w)},
	})
}

func sinkNode[T any](b *builder, name string, parallelism int, of func(T) entry) int {
	w, p := b.w, b.p
	return b.node(graph.Node{
		Name: name, Kind: "sink", Parallelism: parallelism, Sink: &graph.SinkInfo{Kind: graph.SinkTransactional},
	}, operator.Spec{
		Make: func([][]any) operator.Made {
			return w.tap(p, operator.NewSink(operator.SinkConfig[T]{
				Name: name,
				Writer: func(_ context.Context, i connector.Instance) (connector.Writer[T], error) {
					p.yield()
					return &writer[T]{p: p, b: w.bank, i: i, entry: of}, nil
				},
			}))
		},
		Committer: committer{p, w.bank, name},
	})
}

func edgeOf[T any](w *world) func(operator.EdgeConfig) operator.EdgeWriter {
	return func(c operator.EdgeConfig) operator.EdgeWriter {
		c.Batch = w.batch
		return operator.NewEdge[T](c)
	}
}

func hashBy[T any](key func(T) uint32) func(seed uint64) (func(T) uint64, error) {
	return func(seed uint64) (func(T) uint64, error) {
		hash, err := keyhash.For[uint32](seed)
		return func(v T) uint64 { return hash(key(v)) }, err
	}
}

// options are those of process p.
func (w *world) options(p *process) cluster.Options {
	return cluster.Options{
		Store: p.store,
		Lock:  func() (func(), error) { return w.bank.lock(p) },
		Mode:  w.Mode,
		Checkpoint: cluster.CheckpointOptions{
			Interval: w.interval, Timeout: w.timeout, MinPause: w.minPause, FailAfter: w.failAfter, Retain: w.retain,
			Inline: w.inline, AlignmentLimit: w.alignmentLimit, GiveUpAppend: w.giveUp,
		},
		Restart:         cluster.RestartPolicy{Delay: 5 * time.Millisecond, MaxDelay: 200 * time.Millisecond, Factor: 2, Reset: time.Second},
		Takeover:        p.takeover,
		ChannelCapacity: w.channel,
		TrimEvery:       w.trimEvery,
		OnEvent:         func(e cluster.Event) { w.event(p, e) },
		Env:             p,
		Workers:         &workers{Workers: cluster.LocalWorkers(p), p: p},
		Observe:         w.Cover.observe(),
		Owner:           p.String(),
	}
}

// event is what an execution tells its user.
func (w *world) event(p *process, e cluster.Event) {
	switch e := e.(type) {
	case cluster.Started:
		w.tracef("%v: attempt %v, restored %d", p, e.Epoch, e.Restored)
		p.epoch, p.completes, p.aborts, p.lostMail = e.Epoch, nil, nil, false
		p.consecutive = 0
		if w.bank.owner != p && !p.takeover {
			w.fail("%v runs beside a living owner", p)
		}
		w.ask(p)
	case cluster.Checkpointed:
		w.tracef("%v: checkpoint %d", p, e.Stats.ID)
		w.result.Checkpoints++
		p.completes = append(p.completes, e.Stats.ID)
		p.consecutive = 0
		w.ask(p)
	case cluster.CheckpointFailed:
		w.tracef("%v: checkpoint %d failed: %v", p, e.Stats.ID, e.Stats.Failure)
		w.result.Failed++
		if e.Stats.Failure.Phase > checkpoint.PhaseEnumerators {
			p.aborts = append(p.aborts, e.Stats.ID)
		}
		p.consecutive++
		w.ask(p)
	case cluster.Restarting:
		w.tracef("%v: restart %d: %v", p, e.Restart, e.Cause)
		w.result.Restarts++
		if strings.Contains(e.Cause.Error(), "consecutive checkpoint") && p.consecutive < w.failAfter {
			w.fail("%v: the attempt was failed after %d checkpoints that failed, allowed are %d: %w", p, p.consecutive, w.failAfter-1, e.Cause)
		}
		if unexpected(e.Cause) && !w.collected(p, e.Cause) {
			w.fail("%v: an attempt failed: %w", p, e.Cause)
		}
	}
}

// ask asks for a checkpoint at some time, as a user does.
func (w *world) ask(p *process) {
	if !w.happens(w.requests) {
		return
	}
	if w.rng.IntN(4) == 0 {
		p.request()
		return
	}
	p.later(p.request)
}

func (p *process) request() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits for the answer
	p.exec.Checkpoint(ctx)
}

var errLocked = cluster.ErrLocked

func isFenced(err error) bool { return errors.Is(err, ckptlog.ErrFenced) }

// unexpected says whether an error comes from nothing that was made to fail.
func unexpected(err error) bool {
	for _, made := range []error{
		errInjected, storage.ErrUnreachable, memstore.ErrNoReply, memstore.ErrDead, storage.ErrNotWritten,
		ckptlog.ErrFenced, ckptlog.ErrUndecided, ckptlog.ErrVoided, context.Canceled,
	} {
		if errors.Is(err, made) {
			return false
		}
	}
	text := fmt.Sprint(err)
	for _, made := range []string{"consecutive checkpoint fail", "was dropped"} {
		if strings.Contains(text, made) {
			return false
		}
	}
	return true
}
