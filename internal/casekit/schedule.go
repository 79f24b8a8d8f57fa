package casekit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage/memstore"
)

// Schedule is a cluster.Env in which nothing runs at the same time as anything
// else: which subtask, leader or piece of work goes on next is drawn from a
// seed, so that a run that went wrong is repeated by its seed.
type Schedule struct {
	Rand *rand.Rand
	// Each, if set, is called before every step.
	Each func()

	seed   uint64
	now    int64
	nonces uint64
	leader *cluster.Execution
	actors []*actor
	timers []*timer
	cur    *actor // whose coroutine runs
}

// NewSchedule returns the schedule of a seed.
func NewSchedule(seed uint64) *Schedule {
	return &Schedule{
		Rand: rand.New(rand.NewPCG(seed, 7)), seed: seed,
		now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano(),
	}
}

// actor is a subtask or a piece of work; neither is the leader.
type actor struct {
	weight int
	dry    bool  // had nothing to do; until something else is done
	at     int64 // a subtask may have something then; work sleeps until then

	stepper cluster.Stepper
	closed  func()

	next   func() (struct{}, bool)
	stop   func()
	out    func(struct{}) bool
	dying  bool
	asleep context.Context // of the sleep; nil: awake
}

type timer struct {
	at int64
	f  func() // nil: stopped
}

// maxSteps is far above what a job of some hundred records needs.
const maxSteps = 400_000

// Run begins x, whose Env this is, and steps until it has ended. Its error is
// that x does not end; what x itself says is for x.Wait.
func (s *Schedule) Run(x *cluster.Execution) error {
	s.leader = x
	s.actors = append(s.actors, &actor{weight: 2 + s.Rand.IntN(8)})
	x.Begin()
	defer s.end()
	for range maxSteps {
		select {
		case <-x.Done():
			return nil
		default:
		}
		if s.Each != nil {
			s.Each()
		}
		if !s.step() {
			return fmt.Errorf("seed %d: nothing is left to do, but the job has not ended", s.seed)
		}
	}
	return fmt.Errorf("seed %d: the job has not ended after %d steps", s.seed, maxSteps)
}

// end unwinds the coroutines that are left.
func (s *Schedule) end() {
	for _, a := range s.actors {
		if a.next != nil {
			s.cur, a.dying = a, true
			a.stop()
		}
	}
	s.cur, s.actors = nil, nil
}

// step does one thing, or lets time pass until there is one.
func (s *Schedule) step() bool {
	s.now += s.Rand.Int64N(int64(40 * time.Microsecond))
	var ready []*actor
	sum := 0
	for _, a := range s.actors {
		if s.ready(a) {
			ready = append(ready, a)
			sum += a.weight
		}
	}
	due := s.due()
	switch {
	case due != nil && s.Rand.IntN(sum+6) < 6:
		f := due.f
		due.f = nil
		f()
		s.wet()
	case sum > 0:
		n := s.Rand.IntN(sum)
		for _, a := range ready {
			if n -= a.weight; n < 0 {
				s.run(a)
				break
			}
		}
	case due == nil:
		return s.wait()
	}
	return true
}

func (s *Schedule) ready(a *actor) bool {
	switch {
	case a.asleep != nil:
		return a.at <= s.now || a.asleep.Err() != nil
	case a.dry:
		return a.at != 0 && a.at <= s.now
	}
	return true
}

func (s *Schedule) run(a *actor) {
	switch {
	case a.stepper != nil:
		st := a.stepper.Step()
		a.at = st.At
		if st.Closed {
			s.remove(a)
			a.closed()
		} else if !st.Worked {
			a.dry = true
			return
		}
		a.at = 0
	case a.next != nil:
		s.cur = a
		_, more := a.next()
		s.cur = nil
		if !more {
			s.remove(a)
		}
	default:
		if !s.leader.Step() {
			a.dry = true
			return
		}
	}
	s.wet()
}

func (s *Schedule) remove(a *actor) {
	s.actors = slices.DeleteFunc(s.actors, func(o *actor) bool { return o == a })
}

// wet says that something was done: everyone may have something to do again.
func (s *Schedule) wet() {
	for _, a := range s.actors {
		a.dry = false
	}
}

// due is the earliest timer, if its time has come.
func (s *Schedule) due() (first *timer) {
	s.timers = slices.DeleteFunc(s.timers, func(t *timer) bool { return t.f == nil })
	for _, t := range s.timers {
		if t.at <= s.now && (first == nil || t.at < first.at) {
			first = t
		}
	}
	return first
}

// wait lets time pass until something is due.
func (s *Schedule) wait() bool {
	next := int64(0)
	until := func(at int64) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	for _, t := range s.timers {
		until(t.at)
	}
	for _, a := range s.actors {
		until(a.at)
	}
	s.now = max(s.now, next)
	return next != 0
}

var errUnwound = errors.New("the schedule has ended")

// Yield lets others run, within work that Go was given; elsewhere it does
// nothing. It is for memstore.Store.Yield: work switches at every call.
func (s *Schedule) Yield(memstore.Op) {
	if a := s.cur; a != nil && (a.dying || !a.out(struct{}{})) {
		a.dying = true
		panic(errUnwound)
	}
}

// Now implements cluster.Env.
func (s *Schedule) Now() int64 { return s.now }

// Go implements cluster.Env. Some work is slow.
func (s *Schedule) Go(_ string, work func()) {
	a := &actor{weight: 1 + s.Rand.IntN(6)}
	a.next, a.stop = iter.Pull(func(out func(struct{}) bool) {
		a.out = out
		defer func() {
			if a.dying {
				recover()
			}
		}()
		work()
	})
	s.actors = append(s.actors, a)
	s.wet()
}

// After implements cluster.Env.
func (s *Schedule) After(d time.Duration, f func()) (stop func()) {
	t := &timer{s.now + max(int64(d), 0), f}
	s.timers = append(s.timers, t)
	return func() { t.f = nil }
}

// Sleep implements cluster.Env.
func (s *Schedule) Sleep(ctx context.Context, d time.Duration) error {
	if a := s.cur; a != nil {
		a.asleep, a.at = ctx, s.now+int64(d)
		s.Yield(memstore.Op{})
		a.asleep, a.at = nil, 0
	}
	return ctx.Err()
}

// Drive implements cluster.Env.
func (s *Schedule) Drive(st cluster.Stepper, closed func()) {
	s.actors = append(s.actors, &actor{weight: 1 + s.Rand.IntN(10), stepper: st, closed: closed})
	s.wet()
}

// Nonce implements cluster.Env.
func (s *Schedule) Nonce() (b [16]byte) {
	s.nonces++
	binary.BigEndian.PutUint64(b[:], s.Rand.Uint64())
	binary.BigEndian.PutUint64(b[8:], s.nonces)
	return b
}
