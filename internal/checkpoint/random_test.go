package checkpoint

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestRandomSchedules runs a coordinator with the barriers of a small graph
//
//	src/0 -+-> map/0 -+-> sink/0
//	src/1 -+-> map/1 -+
//
// under seeded schedules with declines, failures, timeouts, savepoints and logs
// that do not answer, until the job has finished. Its oracle counts records:
// the snapshot of each subtask holds how many of each source it has processed.
func TestRandomSchedules(t *testing.T) {
	runs := 1000
	if testing.Short() {
		runs = 100
	}
	base := rand.Uint64()
	t.Logf("base seed %d", base)
	total := CoordinatorCounters{}
	met := visits{}
	for _, mode := range []Mode{ExactlyOnce, AtLeastOnce, AtMostOnce} {
		for i := range runs {
			c := runSchedule(t, mode, base+uint64(i), false, met)
			total.Completed += c.Completed
			total.Failed += c.Failed
			if t.Failed() {
				runSchedule(t, mode, base+uint64(i), true, met)
				t.Fatalf("%v, seed %d", mode, base+uint64(i))
			}
		}
	}
	t.Logf("%d checkpoints completed, %d failed", total.Completed, total.Failed)
	if total.Completed < int64(3*runs*2) || total.Failed < int64(runs) {
		t.Errorf("the schedules exercise too little")
	}
	met.check(t, "barriers", BarrierStates(), BarrierEvents(), BarrierImpossible())
}

// FuzzSchedules lets the fuzzer look for a seed.
func FuzzSchedules(f *testing.F) {
	f.Add(uint64(1), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, mode uint8) {
		runSchedule(t, Mode(mode%3)+ExactlyOnce, seed, false, visits{})
	})
}

// visits counts how often a state met an event.
type visits map[string]int

func (v visits) add(machine, state, event string) { v[machine+" "+state+" "+event]++ }

// check reports the cells that were never visited, and fails for one that was
// though it is listed as impossible. TestEveryCell visits them all.
func (v visits) check(t *testing.T, machine string, states, events []string, impossible [][2]string) {
	for _, s := range states {
		for _, e := range events {
			n := v[machine+" "+s+" "+e]
			if not := slices.Contains(impossible, [2]string{s, e}); not && n > 0 {
				t.Errorf("%s: %s met %s, which is listed as impossible", machine, s, e)
			} else if !not && n == 0 {
				t.Logf("%s: %s never met %s", machine, s, e)
			}
		}
	}
}

const (
	record = iota
	barrierElement
	marker
	end
)

type elem struct {
	kind, source int
	barrier      Barrier
	id           ID
}

type edge struct {
	to    *actor
	ch    int
	queue []elem
	ended bool
}

type actor struct {
	id        SubtaskID
	b         *Barriers
	in, out   []*edge
	mails     []any // from the coordinator
	seen      [2]int
	left      int // records a source has still to emit
	ended     bool
	preparing ID
	writing   []ID
	snapshots map[ID][2]int
	begun     ID
	told      map[ID]string
}

type world struct {
	t         *testing.T
	rng       *rand.Rand
	mode      Mode
	c         *Coordinator
	actors    []*actor
	toCoord   []Event // from subtasks and the shell, each delivered in order
	shell     []Event // answers of the shell, in any order
	due       bool
	timers    map[ID]bool
	faults    int // faults left
	outcome   map[ID]string
	triggered map[ID]bool
	committed ID
	finished  bool
	tracing   bool
	met       visits
	trace     []string
}

func runSchedule(t *testing.T, mode Mode, seed uint64, tracing bool, met visits) CoordinatorCounters {
	w := &world{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), mode: mode, faults: 6, tracing: tracing, met: met,
		timers: map[ID]bool{}, outcome: map[ID]string{}, triggered: map[ID]bool{},
	}
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v", r)
		}
		if tracing {
			t.Logf("seed %d, the last steps:\n%s", seed, strings.Join(w.trace[max(0, len(w.trace)-80):], "\n"))
		}
	}()
	w.build()
	w.coordinate(Started{})
	for _, a := range w.actors {
		w.toCoord = append(w.toCoord, SubtaskReady{a.id})
	}
	for step := 0; !w.finished; step++ {
		if step > 100_000 {
			t.Errorf("not finished; coordinator %v", w.c)
			break
		}
		w.step()
		if t.Failed() {
			break
		}
	}
	if w.finished {
		w.checkEnd()
	}
	return w.c.Counters()
}

func (w *world) build() {
	add := func(vertex string, index, inputs int) *actor {
		a := &actor{
			id: SubtaskID{vertex, index}, b: NewBarriers(w.mode, inputs, BarrierOptions{}),
			snapshots: map[ID][2]int{}, told: map[ID]string{},
		}
		w.actors = append(w.actors, a)
		return a
	}
	s0, s1 := add("src", 0, 0), add("src", 1, 0)
	m0, m1 := add("map", 0, 2), add("map", 1, 2)
	sink := add("sink", 0, 2)
	s0.left, s1.left = 1+w.rng.IntN(80), 1+w.rng.IntN(80)
	connect := func(from, to *actor) {
		e := &edge{to: to, ch: len(to.in)}
		from.out, to.in = append(from.out, e), append(to.in, e)
	}
	for _, m := range []*actor{m0, m1} {
		connect(s0, m)
		connect(s1, m)
		connect(m, sink)
	}
	cfg := Config{Interval: 1, Timeout: 1, Retain: 1 + w.rng.IntN(3), Epoch: Epoch{1, 1}}
	for _, a := range w.actors {
		plan := SubtaskPlan{ID: a.id, Source: len(a.in) == 0}
		for _, from := range w.actors {
			if slices.ContainsFunc(from.out, func(e *edge) bool { return e.to == a }) {
				plan.Inputs = append(plan.Inputs, from.id)
			}
		}
		cfg.Subtasks = append(cfg.Subtasks, plan)
	}
	w.c = NewCoordinator(cfg)
}

// step does one of the things that may happen next.
func (w *world) step() {
	var can []func()
	for _, a := range w.actors {
		if len(a.mails) > 0 {
			can = append(can, func() { w.mail(a) })
		}
		if a.preparing != 0 {
			can = append(can, func() { w.prepared(a) })
		}
		if len(a.writing) > 0 {
			can = append(can, func() { w.written(a) })
		}
		if len(a.in) == 0 && !a.ended && a.preparing == 0 {
			can = append(can, func() { w.emit(a) })
		}
		for _, e := range a.in {
			if len(e.queue) > 0 && !a.b.Blocked(e.ch) {
				can = append(can, func() { w.take(a, e) })
			}
		}
	}
	if len(w.toCoord) > 0 {
		can = append(can, func() {
			e := w.toCoord[0]
			w.toCoord = w.toCoord[1:]
			w.coordinate(e)
		})
	}
	for i := range w.shell {
		can = append(can, func() { w.answer(i) })
	}
	if w.due {
		can = append(can, func() { w.due = false; w.coordinate(Due{}) })
	}
	if len(can) == 0 {
		// A blocked channel or a lost id: what a timeout is for, but nothing here
		// loses anything, so only what was left to a fault may wait for it.
		w.t.Errorf("nothing can happen, coordinator %v, pending %d", w.c, len(w.c.pending))
		return
	}
	switch n := w.rng.IntN(300); {
	case n == 0 && len(w.timers) > 0 && w.fault():
		ids := make([]ID, 0, len(w.timers))
		for id := range w.timers {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		w.coordinate(TimerFired{ids[w.rng.IntN(len(ids))]})
	case n == 1:
		w.coordinate(TriggerRequested{Savepoint: true, Token: "s"})
	case n == 2:
		w.coordinate(Acked{Ack{Subtask: w.actors[2].id, Epoch: Epoch{1, 0}, ID: w.c.NextID() - 1}})
	case n == 3 && w.mode != AtLeastOnce && w.fault():
		a := w.actors[w.rng.IntN(len(w.actors))]
		if a.b.preparing != nil || !slices.ContainsFunc(a.b.channels, func(c channelState) bool { return c.blocked != 0 }) {
			return // it holds nothing back
		}
		w.met.add("barriers", a.b.State(), "limit")
		w.run(a, "limit", a.b.LimitExceeded("held"))
	case n == 4:
		w.coordinate(TriggerRequested{Token: "c"})
	case n == 5:
		w.coordinate(Pinned{ID(1 + w.rng.IntN(int(w.c.NextID())))})
	case n == 6:
		w.coordinate(Unpinned{ID(1 + w.rng.IntN(int(w.c.NextID())))})
	default:
		can[w.rng.IntN(len(can))]()
	}
}

func (w *world) fault() bool {
	if w.faults == 0 {
		return false
	}
	w.faults--
	return true
}

func (w *world) emit(a *actor) {
	source := a.id.Index
	if a.left == 0 {
		w.end(a)
		return
	}
	a.left--
	a.seen[source]++
	e := a.out[w.rng.IntN(2)]
	e.queue = append(e.queue, elem{kind: record, source: source})
}

func (w *world) end(a *actor) {
	a.ended = true
	for _, e := range a.out {
		e.queue = append(e.queue, elem{kind: end})
		e.ended = true
	}
	w.toCoord = append(w.toCoord, SubtaskEnded{a.id})
}

func (w *world) take(a *actor, e *edge) {
	x := e.queue[0]
	e.queue = e.queue[1:]
	switch x.kind {
	case record:
		a.seen[x.source]++
		for _, o := range a.out {
			o.queue = append(o.queue, x)
		}
	case barrierElement:
		w.met.add("barriers", a.b.State(), "barrier")
		w.run(a, fmt.Sprintf("ch%d barrier %v", e.ch, x.barrier), a.b.Barrier(e.ch, x.barrier, 1))
	case marker:
		w.met.add("barriers", a.b.State(), "cancel")
		w.run(a, fmt.Sprintf("ch%d cancel %d", e.ch, x.id), a.b.Cancel(e.ch, x.id))
	case end:
		w.met.add("barriers", a.b.State(), "end-of-input")
		w.run(a, fmt.Sprintf("ch%d end", e.ch), a.b.EndOfInput(e.ch, 1))
		w.checkEnded(a)
	}
}

// checkEnded ends a subtask whose inputs have ended, not while it prepares.
func (w *world) checkEnded(a *actor) {
	if len(a.in) > 0 && !a.ended && a.preparing == 0 && a.b.State() == "ended" {
		w.end(a)
	}
}

func (w *world) mail(a *actor) {
	m := a.mails[0]
	a.mails = a.mails[1:]
	switch m := m.(type) {
	case Trigger:
		if m.Barrier.ID > a.begun && w.rng.IntN(50) == 0 && w.fault() {
			w.met.add("barriers", a.b.State(), "fail")
			w.run(a, fmt.Sprintf("refuses %v", m.Barrier), a.b.Fail(m.Barrier.ID, NotReady, "opening"))
			return
		}
		w.met.add("barriers", a.b.State(), "trigger")
		w.run(a, fmt.Sprintf("trigger %v", m.Barrier), a.b.Trigger(m.Barrier, 1))
	case Complete:
		w.met.add("barriers", a.b.State(), "complete")
		w.run(a, fmt.Sprintf("complete %d", m.ID), a.b.Complete(m.ID))
	case Abort:
		w.met.add("barriers", a.b.State(), "abort")
		w.run(a, fmt.Sprintf("abort %d", m.ID), a.b.Abort(m))
	}
}

func (w *world) prepared(a *actor) {
	id := a.preparing
	a.preparing = 0
	if w.rng.IntN(60) == 0 && w.fault() {
		w.met.add("barriers", a.b.State(), "fail")
		w.run(a, fmt.Sprintf("busy %d", id), a.b.Fail(id, Busy, ""))
	} else {
		w.met.add("barriers", a.b.State(), "prepared")
		w.run(a, fmt.Sprintf("prepared %d", id), a.b.Prepared(id, 1))
	}
	w.checkEnded(a)
}

func (w *world) written(a *actor) {
	id := a.writing[0]
	a.writing = a.writing[1:]
	if w.rng.IntN(60) == 0 && w.fault() {
		w.met.add("barriers", a.b.State(), "fail")
		w.run(a, fmt.Sprintf("async failed %d", id), a.b.Fail(id, AsyncFailed, ""))
		return
	}
	ack := Ack{Subtask: a.id, Epoch: Epoch{1, 1}, ID: id}
	if a.id.Vertex == "sink" && w.rng.IntN(4) > 0 {
		ack.Operators = []OperatorAck{{Committables: []Committable{{ID: "t"}}}}
	}
	w.toCoord = append(w.toCoord, Acked{ack})
	if w.rng.IntN(20) == 0 {
		w.toCoord = append(w.toCoord, Acked{ack})
	}
}

// run carries out what the barriers of a subtask ask for.
func (w *world) run(a *actor, event string, as []Action) {
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("%v: %s -> %v = %v", a.id, event, as, a.b))
	}
	markers := map[ID]int{}
	for _, x := range as {
		switch x := x.(type) {
		case Begin:
			if x.Barrier.ID <= a.begun {
				w.t.Errorf("%v begins %d after %d", a.id, x.Barrier.ID, a.begun)
			}
			a.begun = x.Barrier.ID
			a.preparing = x.Barrier.ID
		case Emit:
			w.send(a, elem{kind: barrierElement, barrier: x.Barrier})
		case Snapshot:
			a.snapshots[x.Barrier.ID] = a.seen
			a.writing = append(a.writing, x.Barrier.ID)
		case ForwardCancel:
			if markers[x.ID]++; markers[x.ID] > 1 {
				w.t.Errorf("%v forwards the marker of %d twice", a.id, x.ID)
			}
			w.send(a, elem{kind: marker, id: x.ID})
		case SendDecline:
			w.toCoord = append(w.toCoord, DeclinedBy{Decline{a.id, Epoch{1, 1}, x.ID, x.Reason, x.Detail}})
		case Discard:
			w.tell(a, x.ID, "discard")
			a.writing = slices.DeleteFunc(a.writing, func(id ID) bool { return id == x.ID })
		case NotifyComplete:
			w.tell(a, x.ID, "complete")
		}
	}
}

func (w *world) tell(a *actor, id ID, what string) {
	if a.told[id] != "" {
		w.t.Errorf("%v is told %s of %d after %s", a.id, what, id, a.told[id])
	}
	a.told[id] = what
}

func (w *world) send(a *actor, x elem) {
	for _, e := range a.out {
		if !e.ended {
			e.queue = append(e.queue, x)
		}
	}
}

func (w *world) coordinate(e Event) {
	as := w.c.Handle(1, e)
	if w.tracing {
		w.trace = append(w.trace, fmt.Sprintf("coordinator: %s %v -> %v = %v", EventName(e), e, as, w.c))
	}
	for _, x := range as {
		switch x := x.(type) {
		case SetTimer:
			if x.Kind == TimerDue {
				w.due = true
			} else {
				w.timers[x.ID] = true
			}
		case CancelTimer:
			if x.Kind == TimerDue {
				w.due = false
			} else {
				delete(w.timers, x.ID)
			}
		case SnapshotEnumerators:
			w.shell = append(w.shell, EnumeratorsSnapshotted{x.ID})
		case SendTrigger:
			w.triggered[x.Trigger.Barrier.ID] = true
			a := w.actors[slices.IndexFunc(w.actors, func(a *actor) bool { return a.id == x.Subtask })]
			a.mails = append(a.mails, x.Trigger)
		case Publish:
			w.shell = append(w.shell, Published{ID: x.ID})
		case Append:
			w.shell = append(w.shell, Appended{x.ID})
		case SendComplete:
			w.outcomeOf(x.Complete.ID, "complete")
			w.checkCut(x.Complete.ID)
			w.broadcast(x.Complete)
		case SendAbort:
			w.outcomeOf(x.Abort.ID, "abort")
			w.broadcast(x.Abort)
		case CommitSinks:
			w.shell = append(w.shell, SinksCommitted{x.ID})
		case AppendCommitted:
			w.toCoord = append(w.toCoord, CommittedAppended{x.ID})
		case SendCommitted:
			w.committed = max(w.committed, x.Committed.ID)
		case Dispose:
			for _, id := range x.IDs {
				if id >= w.c.Latest() {
					w.t.Errorf("disposes of %d, newest is %d", id, w.c.Latest())
				}
			}
		case Finish:
			w.finished = true
		}
	}
}

// answer lets the shell answer, or fail, or not know.
func (w *world) answer(i int) {
	e := w.shell[i]
	remove := func() { w.shell = slices.Delete(w.shell, i, i+1) }
	fails := w.rng.IntN(40) == 0 && w.fault()
	switch e := e.(type) {
	case EnumeratorsSnapshotted:
		remove()
		if fails {
			w.coordinate(EnumeratorsFailed{e.ID, "no broker"})
			return
		}
	case Published:
		remove()
		if fails {
			w.coordinate(Published{e.ID, errors.New("disk full")})
			return
		}
	case Appended:
		if fails && w.rng.IntN(2) == 0 {
			w.coordinate(Undecided{e.ID})
			return // and stays
		}
		remove()
		if fails {
			w.coordinate(AppendVoided{e.ID, errors.New("void")})
			return
		}
	case SinksCommitted:
		if fails {
			w.coordinate(SinksFailed{e.ID, "refused"})
			return // and stays
		}
		remove()
	}
	w.coordinate(e)
}

func (w *world) outcomeOf(id ID, what string) {
	if w.outcome[id] != "" {
		w.t.Errorf("checkpoint %d: %s after %s", id, what, w.outcome[id])
	}
	w.outcome[id] = what
}

func (w *world) broadcast(mail any) {
	for _, a := range w.actors {
		a.mails = append(a.mails, mail)
	}
}

// checkCut compares the snapshots of a complete checkpoint: what a source says
// it has emitted is what those behind it have processed, and with AtLeastOnce no
// less.
func (w *world) checkCut(id ID) {
	at := func(vertex string) (n [2]int) {
		for _, a := range w.actors {
			if a.id.Vertex != vertex {
				continue
			}
			s, ok := a.snapshots[id]
			if !ok {
				w.t.Errorf("checkpoint %d is complete without %v", id, a.id)
			}
			n[0] += s[0]
			n[1] += s[1]
		}
		return n
	}
	emitted := at("src")
	for _, vertex := range []string{"map", "sink"} {
		got := at(vertex)
		exact := got == emitted
		atLeast := w.mode == AtLeastOnce && got[0] >= emitted[0] && got[1] >= emitted[1]
		if !exact && !atLeast {
			w.t.Errorf("checkpoint %d: sources emitted %v, %s has %v", id, emitted, vertex, got)
		}
	}
}

// checkEnd looks at the world after the job has finished.
func (w *world) checkEnd() {
	for len(w.c.pending) == 0 && slices.ContainsFunc(w.actors, func(a *actor) bool { return len(a.mails) > 0 }) {
		for _, a := range w.actors {
			for len(a.mails) > 0 {
				w.mail(a)
			}
		}
	}
	for id := range w.triggered {
		if w.outcome[id] == "" {
			w.t.Errorf("checkpoint %d has no outcome", id)
		}
	}
	last := w.actors[len(w.actors)-1].snapshots[w.c.Latest()]
	for i, source := range w.actors[:2] {
		if source.left != 0 || last[i] != source.seen[i] {
			w.t.Errorf("the final checkpoint has %d of %d records of %v", last[i], source.seen[i], source.id)
		}
	}
	for _, a := range w.actors {
		if a.b.State() != "ended" {
			w.t.Errorf("%v is %v at the end", a.id, a.b)
		}
		for _, e := range a.in {
			if a.b.Blocked(e.ch) || len(e.queue) > 0 {
				w.t.Errorf("%v, channel %d: blocked %v, %d queued", a.id, e.ch, a.b.Blocked(e.ch), len(e.queue))
			}
		}
	}
}
