package staunch

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"sync"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statestore"
)

// Processor is the user's code of Process, one value a subtask. It may also
// implement TimerHandler, Opener and io.Closer.
type Processor[K comparable, In, Out any] interface {
	Process(c *Ctx[Out], key K, in In) error
}

// TimerHandler is implemented by a processor that declared a timer. OnTimer is not
// called for timers that are not due when bounded input ends.
type TimerHandler[K comparable, Out any] interface {
	OnTimer(c *Ctx[Out], key K, t Timer) error
}

// Opener is implemented by a processor that needs resources; io.Closer
// releases them.
type Opener interface {
	Open(ctx context.Context, i connector.Instance) error
}

// ProcessFunc is a Processor of one function.
type ProcessFunc[K comparable, In, Out any] func(c *Ctx[Out], key K, in In) error

// Process calls f.
func (f ProcessFunc[K, In, Out]) Process(c *Ctx[Out], key K, in In) error { return f(c, key, in) }

// Process runs a processor over a keyed stream; newP makes one for each
// subtask. In messages of the compiler, K and In are the types of the keyed
// stream: the processor needs a method Process(c *Ctx[Out], key K, in In) error.
func Process[K comparable, In, Out any, P Processor[K, In, Out]](s Keyed[K, In], name string, newP func(*Setup) P, opts ...Option) Stream[Out] {
	n := keyedNode(s, "process", name, opts)
	n.sides = true
	j := s.s.job
	out := mainPort[Out](j, n)
	if newP == nil {
		j.fault("%s: the constructor is nil", n.label)
		return out
	}
	make := func(s *Setup) Processor[K, In, Out] { return newP(s) }
	planProcess(j, n, make)
	left := new(unfired)
	n.make = func(name string, outs [][]any) operator.Made {
		o := &processOp[K, In, Out]{new: make, unfired: left}
		o.keyedCall = newKeyedCall[K, In, Out](n, name, s.key, outs)
		return operator.Made{Op: o, Entries: []operator.Entry{operator.NewEntry[In](o)}}
	}
	return out
}

// planProcess runs the constructor once to learn what it declares.
func planProcess[K comparable, In, Out any](j *Job, n *node, new func(*Setup) Processor[K, In, Out]) {
	store, err := newStore[K](nil)
	if err != nil {
		return // KeyBy has said so
	}
	s := &Setup{op: n.Name, store: store}
	p, err := construct(s, new)
	if err != nil {
		j.fault("%w", err)
		return
	}
	j.faults = append(j.faults, s.faults...)
	n.declare(store)
	n.Properties = graph.Properties(s.props)
	if len(s.timers) > 0 {
		n.Emits = graph.EmitsFromState
	}
	if isNil(p) {
		j.fault("%s: its constructor returns nil", n.label)
		return
	}
	checkProcessor[K, In, Out](j, n, s, p)
}

// construct calls a constructor. One that panics is a fault of the graph, or the
// failure of the attempt, and says where.
func construct[K comparable, In, Out any](s *Setup, new func(*Setup) Processor[K, In, Out]) (p Processor[K, In, Out], err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("operator %q: its constructor panics: %v", s.op, r)
		}
	}()
	return new(s), nil
}

// checkProcessor finds optional methods that are there with another signature:
// as Go sees it they are simply not implemented, and would never be called.
func checkProcessor[K comparable, In, Out any](j *Job, n *node, s *Setup, p Processor[K, In, Out]) {
	_, fires := p.(TimerHandler[K, Out])
	onTimer := fmt.Sprintf("OnTimer(*Ctx[%v], %v, Timer) error", reflect.TypeFor[Out](), reflect.TypeFor[K]())
	if len(s.timers) > 0 && !fires {
		j.fault("%s declares timer %q, but %T has no %s", n.label, s.timers[0].name, p, onTimer)
	}
	for _, m := range []struct {
		name, want string
		ok         bool
	}{
		{"OnTimer", onTimer, fires || len(s.timers) > 0},
		{"Open", "Open(context.Context, connector.Instance) error", implements[Opener](p)},
		{"Close", "Close() error", implements[io.Closer](p)},
	} {
		if method, has := reflect.TypeOf(p).MethodByName(m.name); has && !m.ok {
			j.fault("%s: %T has %s as %v, which is never called: it must be %s", n.label, p, m.name, method.Func.Type(), m.want)
		}
	}
}

func implements[I any](v any) bool {
	_, ok := v.(I)
	return ok
}

// processOp is one subtask of Process.
type processOp[K comparable, In, Out any] struct {
	keyedCall[K, In, Out]
	new    func(*Setup) Processor[K, In, Out]
	p      Processor[K, In, Out]
	fires  TimerHandler[K, Out] // nil: no timers
	timers []Timer
	opened bool
	// unfired is shared by the subtasks.
	unfired *unfired
}

// Open implements operator.Operator: it makes the processor, restores its
// state, and opens it.
func (o *processOp[K, In, Out]) Open(rt *operator.Runtime) error {
	if err := o.bind(rt); err != nil {
		return err
	}
	s := &Setup{op: o.op, store: o.store, rt: rt}
	p, err := construct(s, o.new)
	if err != nil {
		return err
	}
	if len(s.faults) > 0 {
		return s.faults[0] // the plan has refused these
	}
	o.p, o.timers = p, s.timers
	if len(s.timers) > 0 {
		o.fires = p.(TimerHandler[K, Out])
	}
	rt.Exec(func(ctx context.Context) { err = o.prepare(ctx) }, func() {
		if err != nil {
			rt.Fail(err)
		}
	})
	return nil
}

// prepare does what of Open may block.
func (o *processOp[K, In, Out]) prepare(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("operator %q: open: panic: %v", o.op, r)
		}
	}()
	if err := o.restore(ctx); err != nil {
		return err
	}
	if p, ok := o.p.(Opener); ok {
		if err := p.Open(ctx, o.c.rt.Instance); err != nil {
			return fmt.Errorf("operator %q: open: %w", o.op, err)
		}
	}
	o.opened = true
	return nil
}

func (o *processOp[K, In, Out]) Process(r *element.Run[In]) error {
	o.begin(r)
	for i := range r.Values {
		if err := o.p.Process(&o.c, o.take(r, i), r.Values[i]); err != nil {
			return o.failed(err)
		}
	}
	return o.end()
}

// Finish implements operator.Operator. What is set for later never fires: this is
// where it is said.
func (o *processOp[K, In, Out]) Finish() error {
	var set int64
	for _, t := range o.timers {
		set += int64(t.t.Len())
	}
	rt := o.c.rt
	if n := o.unfired.ended(rt.Instance, set); n > 0 {
		rt.Log.Warn("timers of all subtasks that were not due when the input ended never fire", "timers", n)
	}
	return o.keyedCall.Finish()
}

// unfired counts the timers that the subtasks of an operator still have when
// their input has ended.
type unfired struct {
	mu     sync.Mutex
	of     [2]uint64 // generation and attempt
	ends   int
	timers int64
}

// ended adds what a subtask had left, and returns the sum when it is the last one
// of its attempt; 0 before.
func (u *unfired) ended(i connector.Instance, timers int64) int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if of := [2]uint64{i.Generation, i.Attempt}; of != u.of {
		u.of, u.ends, u.timers = of, 0, 0
	}
	u.ends++
	u.timers += timers
	if u.ends < i.Parallelism {
		return 0
	}
	sum := u.timers
	u.ends, u.timers = 0, 0
	return sum
}

// Close implements operator.Operator. What was opened is closed, once.
func (o *processOp[K, In, Out]) Close() error {
	p, ok := o.p.(io.Closer)
	if !ok || !o.opened {
		return nil
	}
	o.opened = false
	if err := p.Close(); err != nil {
		return fmt.Errorf("operator %q: close: %w", o.op, err)
	}
	return nil
}

// NextTimer implements operator.Timers.
func (o *processOp[K, In, Out]) NextTimer() (at int64, ok bool) {
	if o.fires == nil {
		return 0, false
	}
	return o.store.NextTimer(statestore.ProcessingTime)
}

// FireTimers implements operator.Timers.
func (o *processOp[K, In, Out]) FireTimers(now int64, max int) (fired int, err error) {
	o.c.begin(nil)
	o.timer = true
	for ; fired < max; fired++ {
		t, _, ok := o.store.Due(statestore.ProcessingTime, now)
		if !ok {
			break
		}
		o.key = o.keyer.Key()
		if err := o.fires.OnTimer(&o.c, o.key, o.declared(t.Name())); err != nil {
			return fired, o.failed(err)
		}
	}
	return fired, o.end()
}

func (o *processOp[K, In, Out]) declared(name string) Timer {
	for _, t := range o.timers {
		if t.name == name {
			return t
		}
	}
	panic(fmt.Sprintf("operator %q: timer %q fires, which it did not declare", o.op, name))
}
