package operator

import (
	"fmt"

	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/keyhash"
)

// edge is an edge that leaves a subtask: it copies records into a batch for
// each receiving subtask. It belongs to the subtask's goroutine.
type edge[T any] struct {
	name  string
	kind  graph.EdgeKind
	key   func(T) uint64 // Hash edges
	lanes []lane[T]
	next  int // Rebalance: whose turn it is

	in *element.Run[T] // Hash edges: what the user's key function looks at
	at int
}

// batchRecords is how many records a batch has, if nothing else is said.
const batchRecords = 1024

// NewEdge returns the writer of an edge. The plan has been checked before, so a
// configuration that cannot be is a panic.
func NewEdge[T any](cfg EdgeConfig) EdgeWriter {
	e := &edge[T]{name: cfg.Name, kind: cfg.Kind, next: cfg.First}
	switch cfg.Kind {
	case graph.Forward:
		if len(cfg.Outs) != 1 {
			panic(fmt.Sprintf("operator: edge %s: a forward edge has one channel, not %d", cfg.Name, len(cfg.Outs)))
		}
	case graph.Hash:
		hash, ok := cfg.Hash.(func(uint64) (func(T) uint64, error))
		if !ok {
			panic(fmt.Sprintf("operator: edge %s: hash function is a %T", cfg.Name, cfg.Hash))
		}
		var err error
		if e.key, err = hash(cfg.HashSeed); err != nil {
			panic(fmt.Sprintf("operator: edge %s: %v", cfg.Name, err))
		}
	case graph.Rebalance, graph.Broadcast:
	default:
		panic(fmt.Sprintf("operator: edge %s of kind %v", cfg.Name, cfg.Kind))
	}
	limit := cfg.Batch
	if limit <= 0 {
		limit = batchRecords
	}
	e.lanes = make([]lane[T], len(cfg.Outs))
	for i, ch := range cfg.Outs {
		e.lanes[i].init(ch, limit)
	}
	if len(e.lanes) == 0 {
		panic(fmt.Sprintf("operator: edge %s has no channel", cfg.Name))
	}
	e.next %= len(e.lanes)
	return e
}

func (e *edge[T]) Input() any { return Input[T](e) }

func (e *edge[T]) Process(r *element.Run[T]) error {
	switch e.kind {
	case graph.Forward, graph.Broadcast:
		for i := range e.lanes {
			e.lanes[i].appendRun(r)
		}
	case graph.Hash:
		e.hash(r)
	case graph.Rebalance:
		for i := range r.Values {
			e.lanes[e.next].append(r, i)
			if e.next++; e.next == len(e.lanes) {
				e.next = 0
			}
		}
	}
	return nil
}

// hash sends each record to the subtask that owns its key. The hashes travel
// with the records, so that the receiver need not compute them again.
func (e *edge[T]) hash(r *element.Run[T]) {
	n := len(e.lanes)
	e.in = r
	for i, v := range r.Values {
		e.at = i
		h := e.key(v)
		l := &e.lanes[keyhash.Owner(h, n)]
		b := l.batch()
		b.Values = append(b.Values, v)
		b.Hashes = append(b.Hashes, h)
		if r.Times != nil {
			b.Times = append(b.Times, r.Times[i])
		}
		if len(b.Values) >= l.limit {
			l.seal()
		}
	}
	e.in = nil
}

func (e *edge[T]) Watermark(t int64) error {
	e.Emit(element.Element{Kind: element.Watermark, Time: t})
	return nil
}

func (e *edge[T]) Emit(el element.Element) {
	for i := range e.lanes {
		e.lanes[i].seal()
		e.lanes[i].push(el)
	}
}

func (e *edge[T]) Flush(partial bool) bool {
	all := true
	for i := range e.lanes {
		if partial {
			e.lanes[i].seal()
		}
		if !e.lanes[i].drain() {
			all = false
		}
	}
	return all
}

func (e *edge[T]) Queued() int {
	n := 0
	for i := range e.lanes {
		n += e.lanes[i].queued()
	}
	return n
}

func (e *edge[T]) Notify(wake func()) {
	for i := range e.lanes {
		e.lanes[i].ch.NotifyProducer(wake)
	}
}

// Where implements Where: the key function of a hash edge is user code.
func (e *edge[T]) Where() (operator, record string) {
	operator = "key function"
	if e.name != "" {
		operator += " of " + e.name
	}
	if e.in == nil {
		return operator, ""
	}
	return operator, "record " + Describe(e.in.Values[e.at])
}
