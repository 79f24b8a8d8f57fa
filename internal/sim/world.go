package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

// Result is what became of a seed.
type Result struct {
	Err error // what was broken; nil: nothing

	Records     int
	Subtasks    int // with keyed state
	Crashes     int // processes killed before the job had ended
	Stops       int // processes that were told to stop
	Branches    int // starts from an older checkpoint, or fresh
	Pins        int // records
	Alarms      int // that fired, in all attempts
	Rivals      int // processes that took over from a living one
	Restarts    int // attempts that failed inside a process
	Checkpoints int // completed
	Failed      int // checkpoints that failed
	Trims       int // floors in the log
	Steps       int
	Digest      uint64 // of every decision: equal for equal runs
}

// Options of one run.
type Options struct {
	Seed  uint64
	Mode  checkpoint.Mode
	Trace func(format string, args ...any) // nil: none
	Cover *Coverage                        // nil: not counted
	Job   Job                              // nil: one of operators of this package
}

// world is one run of a seed. Nothing in it runs at the same time as anything
// else, so it needs no locks.
type world struct {
	Options
	profile
	rng *rand.Rand
	now int64

	disk  *memstore.Disk
	bank  *bank
	in    *input
	audit audit

	procs       []*process // living ones, oldest first
	byName      map[string]*process
	started     int   // processes so far
	startAt     int64 // when the next one starts; 0: none is due
	timers      timerQueue
	nonces      uint64
	actors      []*actor // scratch
	idle        []*coroutine
	faults      int  // faults that may still happen
	appends     int  // creates in the log so far
	calls       int  // calls of the bank so far
	failNext    bool // the next call of user code fails
	freed       freedSlot
	halfLinked  bool // the last record of the log is visible, but not durable
	finished    bool // a process ended because the job was done
	calm        bool // no more faults, crashes or rivals
	told        []*told
	keepsAlarms bool
	applied     map[string]map[[2]uint32]bool // AtMostOnce: by operator and root of its lineage
	broken      error
	result      Result
}

// epochStart is when every simulation begins.
var epochStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()

// limits of a run, far above what a job needs that goes on.
const (
	maxSteps = 150_000
	maxTime  = int64(10 * time.Minute)
)

// Run simulates one seed.
func Run(o Options) (r Result) {
	w := &world{Options: o, rng: rand.New(rand.NewPCG(o.Seed, uint64(o.Mode))), now: epochStart, applied: map[string]map[[2]uint32]bool{}, byName: map[string]*process{}}
	w.profile = draw(w.rng, o.Mode)
	w.profile.direct(o.Seed, o.Mode)
	w.profile.freeSlots(o.Seed)
	w.profile.keepJournal(o.Seed)
	w.profile.letUserAct(o.Seed)
	w.faults = w.profile.maxFaults
	w.disk = memstore.NewDisk()
	w.bank = newBank(w)
	w.in = newInput(w.rng, &w.profile)
	w.audit.w = w
	defer func() {
		if p := recover(); p != nil {
			w.fail("panic: %v\n%s", p, debug.Stack())
		}
		for len(w.procs) > 0 {
			w.procs[0].end()
		}
		for _, c := range w.idle {
			c.stop()
		}
		r = w.result
		r.Err, r.Records, r.Subtasks = w.broken, w.in.total, w.accounts
	}()
	w.tracef("profile %+v", w.profile)
	w.start(false)
	for w.loop(); w.again(); {
		w.loop()
	}
	if w.broken == nil {
		w.atEnd()
	}
	return
}

// fail notes what was broken; the first one counts.
func (w *world) fail(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

func (w *world) tracef(format string, args ...any) {
	if w.Trace != nil {
		w.Trace("%9.3fms #%-6d "+format, append([]any{float64(w.now-epochStart) / 1e6, w.result.Steps}, args...)...)
	}
}

// loop runs until the job is done and nobody works on it any more.
func (w *world) loop() {
	for w.broken == nil && !(w.finished && len(w.procs) == 0) {
		switch {
		case w.result.Steps >= maxSteps:
			w.fail("the job has not ended after %d steps and %v", w.result.Steps, time.Duration(w.now-epochStart))
			return
		case w.now-epochStart > maxTime:
			w.fail("the job has not ended after %v", time.Duration(w.now-epochStart))
			return
		}
		w.result.Steps++
		w.happen()
		if a := w.pick(); a != nil {
			w.now += w.rng.Int64N(2*w.stepCost + 1)
			w.run(a)
		} else if !w.wait() {
			w.fail("nothing is left to do, but the job has not ended")
		}
	}
}

// happen is what comes from outside: crashes, starts, creates that land late.
func (w *world) happen() {
	if w.startAt != 0 && w.startAt <= w.now {
		w.startAt = 0
		for w.pins > 0 && !w.calm && len(w.procs) == 0 && w.rng.IntN(3) > 0 {
			w.pin()
		}
		w.start(false)
	}
	if !w.calm && (w.result.Steps > w.calmAt || w.calmAfter != 0 && w.now-epochStart > w.calmAfter || w.finished) {
		w.calm, w.calmStart = true, w.now
		w.tracef("from here on nothing fails")
	}
	w.freed.happen(w)
	if w.disk.InFlight() > 0 && !w.freed.holds() && w.rng.IntN(w.landEvery) == 0 {
		w.disk.Land()
	}
	if w.calm || len(w.procs) == 0 {
		return
	}
	for len(w.crashAt) > 0 && w.crashAt[0] <= w.result.Steps && len(w.procs) > 0 {
		w.crashAt = w.crashAt[1:]
		w.crash(w.procs[w.rng.IntN(len(w.procs))])
	}
	for len(w.stopAt) > 0 && w.stopAt[0] <= w.result.Steps && len(w.procs) > 0 {
		w.stopAt = w.stopAt[1:]
		if p := w.procs[w.rng.IntN(len(w.procs))]; w.mayStop(1) {
			p.stop()
		}
	}
	for _, p := range w.procs {
		if p.killAt != 0 && p.killAt <= w.result.Steps {
			w.crash(p)
			return
		}
	}
	if len(w.rivalAt) > 0 && w.rivalAt[0] <= w.result.Steps && len(w.procs) > 0 && len(w.procs) < 3 {
		w.rivalAt = w.rivalAt[1:]
		if w.rng.IntN(5) == 0 {
			w.start(false) // it must be refused while another one lives
			return
		}
		if old := w.procs[len(w.procs)-1]; w.rng.IntN(2) == 0 {
			old.pausedUntil = w.now + w.rng.Int64N(int64(4*time.Second))
			w.tracef("%v is paused", old)
		}
		w.start(true)
	}
}

// crash kills a process; at times the power fails, and all are gone.
func (w *world) crash(p *process) {
	w.result.Crashes++
	if w.rng.IntN(2) == 0 {
		w.tracef("%v is killed", p)
		p.end()
	} else {
		w.tracef("the power fails")
		for len(w.procs) > 0 {
			w.procs[0].end()
		}
		w.halfLinked = false
		w.audit.look()
		w.disk.Crash(func(memstore.Loss, string) bool { return w.rng.IntN(2) == 0 })
		w.audit.powerLost()
	}
	w.startLater()
}

// startLater has the supervisor start the job again if nobody works on it.
func (w *world) startLater() {
	if len(w.procs) == 0 && !w.finished && w.startAt == 0 {
		w.startAt = w.now + 1 + w.rng.Int64N(int64(300*time.Millisecond))
	}
}

// pick chooses who is next, by seed. Slow ones have a small weight.
func (w *world) pick() *actor {
	w.actors = w.actors[:0]
	sum := 0
	for _, p := range w.procs {
		if p.pausedUntil > w.now {
			continue
		}
		for _, a := range p.actors {
			if a.ready(w.now) {
				w.actors = append(w.actors, a)
				sum += a.weight
			}
		}
	}
	if t := w.timers.due(w.now); t != nil && (len(w.actors) == 0 || w.rng.IntN(sum+timerWeight) < timerWeight) {
		w.timers.pop()
		w.digest(uint64(w.now))
		t.fire()
		return w.pick()
	}
	if len(w.actors) == 0 {
		return nil
	}
	n := w.rng.IntN(sum)
	for i, a := range w.actors {
		if n -= a.weight; n < 0 {
			w.digest(uint64(len(w.actors))<<32 + uint64(i))
			return a
		}
	}
	panic("sim: no actor was picked")
}

// timerWeight is that of timers that are due against a leader's.
const timerWeight = 6

func (w *world) digest(x uint64) {
	w.result.Digest = (w.result.Digest ^ x ^ uint64(w.now)) * 0x9e3779b97f4a7c15
}

func (w *world) run(a *actor) {
	p := a.p
	a.run()
	if p.doomed && p.alive {
		p.doomed = false
		w.crash(p)
	}
}

// wait lets time pass until something is due.
func (w *world) wait() bool {
	next := int64(0)
	until := func(at int64) {
		if at > 0 && (next == 0 || at < next) {
			next = at
		}
	}
	until(w.startAt)
	if t := w.timers.first(); t != nil {
		until(t.at)
	}
	for _, p := range w.procs {
		if p.pausedUntil > w.now {
			until(p.pausedUntil)
			continue
		}
		for _, a := range p.actors {
			until(a.at)
			if a.still > w.now {
				until(a.still)
			}
		}
	}
	if next == 0 {
		return w.disk.Land()
	}
	w.now = max(w.now, next)
	return true
}

// ended is told that a process has ended by itself.
func (w *world) ended(p *process, err error) {
	w.tracef("%v has ended: %v", p, err)
	w.audit.look()
	if err == nil {
		p.checkOver()
		switch {
		case p.stopping:
			// Perhaps the job was done all the same: the next start tells.
		case w.audit.lineageOf[p.String()] != w.audit.lineage:
			// It was done, but somebody has gone back behind that.
			w.checkTold(p)
		default:
			w.finished = true
			if w.broken == nil {
				w.checkBank() // all is committed before the job says that it is done
			}
			w.checkTold(p)
		}
	} else {
		w.judge(p, err)
	}
	p.end()
	w.startLater()
}

// collected says whether a fenced process has missed what the new owner has
// deleted.
func (w *world) collected(p *process, err error) bool {
	owners := w.audit.owners
	return errors.Is(err, storage.ErrNotFound) && len(owners) > 0 && owners[len(owners)-1] != p.String()
}

// judge says whether a process may end with err.
func (w *world) judge(p *process, err error) {
	switch {
	case errors.Is(err, errLocked):
		if p.takeover {
			w.fail("%v was refused although it takes over: %w", p, err)
		}
	case w.refused(p, err):
	case isFenced(err):
		if owners := w.audit.owners; len(owners) == 1 && owners[0] == p.String() {
			w.fail("%v is fenced, but nobody took over: %w", p, err)
		}
	case unexpected(err) && !w.collected(p, err):
		w.fail("%v: %w", p, err)
	case w.calm && p.startedAt >= w.calmStart:
		w.fail("%v failed although nothing was made to fail: %w", p, err)
	}
}
