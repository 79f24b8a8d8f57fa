package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage/memstore"
)

// process is one start of the job. It is the cluster.Env of its execution.
//
// What a process does off the leader's loop runs in coroutines that switch at
// every call of the store or of the bank, so that anything may happen between
// two calls. Killing a process unwinds its coroutines where they stand; its
// store handle is dead before that, so nothing they do on the way out counts.
type process struct {
	w           *world
	n           int
	takeover    bool
	startedAt   int64
	exec        *cluster.Execution
	store       *memstore.Store
	alive       bool
	wanted      wanted
	stopping    bool // was told to
	killAt      int  // step at which the user kills it, who is tired of waiting
	over        bool // it has ended by itself
	deletes     int  // calls of its store
	commits     int  // of transactions
	sinks       map[string]bool
	renewed     map[string]bool // by sink
	doomed      bool            // to be killed before anyone else is run
	pausedUntil int64           // as by a long stop of the machine
	outageUntil int64           // it does not reach the store
	bankCut     bool            // nor the bank
	flickers    bool            // the next list fails
	oldDecline  func()
	cost        map[string]int64 // of a record, by operator
	actors      []*actor
	cur         *actor // whose coroutine runs

	// Of the current attempt.
	epoch             checkpoint.Epoch
	givenUp           aborts
	completes, aborts []checkpoint.ID
	lostMail          bool // a Complete was lost on the way
	consecutive       int  // checkpoints that failed since the last one that did not
	counted           int  // of these, those that count against FailAfter

	stale     []staleMail
	staleAcks []checkpoint.Ack
}

func (p *process) String() string { return fmt.Sprintf("process %d", p.n) }

// start starts the job once more.
func (w *world) start(takeover bool) {
	w.started++
	p := &process{w: w, n: w.started, takeover: takeover, startedAt: w.now, alive: true,
		sinks: map[string]bool{}, renewed: map[string]bool{}}
	p.wanted = w.want()
	w.procs = append(w.procs, p)
	w.byName[p.String()] = p
	if takeover {
		w.result.Rivals++
	}
	w.tracef("%v starts, takeover %v, %+v", p, takeover, p.wanted)
	p.store = w.disk.Open()
	p.store.Yield = func(memstore.Op) { p.yield() }
	p.store.Hook = p.fate
	p.add(&actor{kind: leading, name: "leader", weight: 2 + w.rng.IntN(8)})
	p.exec = cluster.New(context.Background(), w.job(p), w.options(p))
	p.exec.Begin()
	if w.mayStop(8) {
		p.stopSoon(1 + int64(100*time.Millisecond)>>(3*w.rng.IntN(5)))
	}
}

// end removes a process, whatever it is doing.
func (p *process) end() {
	p.alive = false
	p.store.Kill()
	p.w.procs = slices.DeleteFunc(p.w.procs, func(o *process) bool { return o == p })
	actors := p.actors
	p.actors = nil
	for _, a := range actors {
		if a.kind == working {
			p.cur, a.co.dying = a, true
			a.co.stop()
		}
	}
	p.cur = nil
	p.w.bank.unlock(p)
}

// drain lets the work of a process that has done its job end, as if the program
// took its time to exit. What sleeps is left.
func (p *process) drain() {
	for p.alive {
		i := slices.IndexFunc(p.actors, func(a *actor) bool { return a.kind == working && (a.asleep == nil || a.asleep.Err() != nil) })
		if i < 0 {
			return
		}
		p.w.run(p.actors[i])
	}
}

// kind is what an actor is.
type kind uint8

const (
	leading  kind = iota + 1 // the leader's inbox
	stepping                 // a subtask
	working                  // a coroutine
)

// actor is something that can be run next.
type actor struct {
	p      *process
	kind   kind
	name   string
	weight int
	dry    bool  // had nothing to do; until something else of the process is done
	at     int64 // a subtask: may have something then; a coroutine: sleeps until then
	still  int64 // the leader: stands still until then, while what is sent to it piles up

	stepper cluster.Stepper
	steps   int
	closed  func()

	co     *coroutine
	asleep context.Context // of the sleep; nil: awake
}

func (p *process) add(a *actor) {
	a.p = p
	p.actors = append(p.actors, a)
	p.wet()
}

func (p *process) remove(a *actor) {
	p.actors = slices.DeleteFunc(p.actors, func(o *actor) bool { return o == a })
}

// wet says that something was done: everyone may have something to do again.
func (p *process) wet() {
	for _, a := range p.actors {
		a.dry = false
	}
}

// ready says whether running a may do something.
func (a *actor) ready(now int64) bool {
	switch {
	case a.still > now:
		return false
	case a.asleep != nil:
		return a.at <= now || a.asleep.Err() != nil
	case a.dry:
		return a.at != 0 && a.at <= now
	}
	return true
}

func (a *actor) run() {
	p := a.p
	switch a.kind {
	case leading:
		if !p.exec.Step() {
			a.dry = true
			return
		}
		if p.w.happens(p.w.slowLeader) {
			p.leaderStands(2 * p.w.interval)
		}
		select {
		case <-p.exec.Done():
			_, err := p.exec.Wait()
			p.w.ended(p, err)
			return
		default:
		}
	case stepping:
		a.steps++
		st := a.stepper.Step()
		a.at = st.At
		if st.Closed {
			p.remove(a)
			a.closed()
		} else if !st.Worked {
			a.dry = true
			return
		}
		a.at = 0
	case working:
		p.w.tracef("%v: %s", p, a.name)
		p.cur = a
		done, _ := a.co.next()
		p.cur = nil
		if done {
			p.remove(a)
			p.w.idle = append(p.w.idle, a.co)
		}
	}
	p.wet()
}

// leaderStands has the leader stand still, for as long as most at most.
func (p *process) leaderStands(most time.Duration) {
	for _, a := range p.actors {
		if a.kind == leading {
			a.still = p.w.now + p.w.rng.Int64N(int64(most))
		}
	}
}

// Now implements cluster.Env.
func (p *process) Now() int64 { return p.w.now }

// Go implements cluster.Env.
func (p *process) Go(name string, work func()) {
	if !p.alive {
		return
	}
	c := p.w.coroutine()
	c.work = work
	p.add(&actor{kind: working, name: name, weight: 1 + p.w.rng.IntN(p.w.workSpread), co: c})
}

// Sleep implements cluster.Env.
func (p *process) Sleep(ctx context.Context, d time.Duration) error {
	a := p.cur
	if a == nil {
		return ctx.Err()
	}
	a.asleep, a.at = ctx, p.w.now+int64(d)
	p.yield()
	a.asleep, a.at = nil, 0
	return ctx.Err()
}

// After implements cluster.Env.
func (p *process) After(d time.Duration, f func()) func() {
	t := &timer{p: p, at: p.w.now + max(int64(d), 0), f: f}
	p.w.timers.add(t)
	return func() { t.f = nil }
}

// Drive implements cluster.Env.
func (p *process) Drive(s cluster.Stepper, closed func()) {
	weight := 10
	if p.w.rng.IntN(p.w.slowEvery) == 0 {
		weight = 1 // a slow subtask
	}
	a := &actor{kind: stepping, name: "subtask", weight: weight, stepper: s, closed: closed}
	p.givenUp.driven(a)
	p.add(a)
}

// Nonce implements cluster.Env.
func (p *process) Nonce() [16]byte { return p.w.nonce() }

func (w *world) nonce() (b [16]byte) {
	w.nonces++
	binary.BigEndian.PutUint64(b[:], w.rng.Uint64())
	binary.BigEndian.PutUint64(b[8:], w.nonces)
	b[0], b[7] = b[7], byte(w.nonces)
	return b
}
