package checkpoint

import (
	"errors"
	"maps"
	"slices"
	"testing"
)

// panics says whether f panics.
func panics(f func()) (is bool) {
	defer func() { is = recover() != nil }()
	f()
	return false
}

// TestEveryCell leads each state machine into each of its states and hands it
// each event: it panics in the cells that are listed as impossible and nowhere
// else.
func TestEveryCell(t *testing.T) {
	t.Run("barriers", func(t *testing.T) {
		mk := func(f func(b *Barriers)) func() *Barriers {
			return func() *Barriers {
				b := NewBarriers(ExactlyOnce, 2, BarrierOptions{})
				f(b)
				return b
			}
		}
		aligned := func(b *Barriers) {
			b.Barrier(0, Barrier{ID: 1}, 1)
			b.Barrier(1, Barrier{ID: 1}, 1)
		}
		states := map[string]func() *Barriers{
			"idle":     mk(func(b *Barriers) {}),
			"aligning": mk(func(b *Barriers) { b.Barrier(0, Barrier{ID: 1}, 1) }),
			"aligning-several": mk(func(b *Barriers) {
				b.Trigger(Barrier{ID: 1}, 1)
				b.Trigger(Barrier{ID: 2}, 1)
				b.Barrier(0, Barrier{ID: 1}, 1)
			}),
			"preparing":         mk(aligned),
			"preparing-aborted": mk(func(b *Barriers) { aligned(b); b.Abort(Abort{ID: 1}) }),
			"ended":             mk(func(b *Barriers) { b.EndOfInput(0, 1); b.EndOfInput(1, 1) }),
		}
		events := map[string]func(b *Barriers){
			"barrier":      func(b *Barriers) { b.Barrier(1, Barrier{ID: 3}, 1) },
			"cancel":       func(b *Barriers) { b.Cancel(1, 3) },
			"end-of-input": func(b *Barriers) { b.EndOfInput(1, 1) },
			"trigger":      func(b *Barriers) { b.Trigger(Barrier{ID: 3}, 1) },
			"prepared":     func(b *Barriers) { b.Prepared(1, 1) },
			"fail":         func(b *Barriers) { b.Fail(1, Busy, "") },
			"limit":        func(b *Barriers) { b.LimitExceeded("") },
			"abort":        func(b *Barriers) { b.Abort(Abort{ID: 1}) },
			"complete":     func(b *Barriers) { b.Complete(1) },
		}
		everyCell(t, states, (*Barriers).State, events, BarrierStates(), BarrierEvents(), BarrierImpossible())
	})
	t.Run("coordinator", func(t *testing.T) {
		one := SubtaskID{"src", 0}
		mk := func(es ...Event) func() *Coordinator {
			return func() *Coordinator {
				c := NewCoordinator(Config{Interval: 1, FailAfter: 1, Subtasks: []SubtaskPlan{{ID: one, Source: true}}, Restored: 1, Retained: []Retained{{ID: 1, Chain: true}}})
				for _, e := range es {
					c.Handle(1, e)
				}
				return c
			}
		}
		ack := Acked{Ack{Subtask: one, ID: 2}}
		decline := DeclinedBy{Decline{Subtask: one, ID: 2, Reason: Declined}}
		path := []Event{SubtaskReady{one}, Due{}, EnumeratorsSnapshotted{2}, ack, Published{ID: 2}}
		states := map[string]func() *Coordinator{
			"starting":    mk(),
			"idle":        mk(path[:1]...),
			"enumerators": mk(path[:2]...),
			"acks":        mk(path[:3]...),
			"publish":     mk(path[:4]...),
			"append":      mk(path...),
			"undecided":   mk(append(slices.Clone(path), Undecided{2})...),
			// A savepoint is on its way to the log when a checkpoint fails the job.
			"failing": mk(path[0], Due{}, EnumeratorsSnapshotted{2}, TriggerRequested{Savepoint: true}, EnumeratorsSnapshotted{3},
				Acked{Ack{Subtask: one, ID: 3}}, Published{ID: 3}, decline),
			"closing": mk(append(slices.Clone(path), AttemptEnded{})...),
			"stopped": mk(Fenced{}),
		}
		events := map[string]func(c *Coordinator){}
		for _, e := range []Event{Started{}, Due{}, TimerFired{2}, TriggerRequested{}, EnumeratorsSnapshotted{2}, EnumeratorsFailed{2, "x"}, ack, decline,
			Published{ID: 2}, Appended{2}, Undecided{2}, AppendVoided{2, errors.New("x")}, SinksCommitted{1}, SinksFailed{1, "x"}, CommittedAppended{0},
			Pinned{1}, Unpinned{1}, SubtaskReady{one}, SubtaskEnded{one}, StopRequested{}, AttemptEnded{}, Fenced{}} {
			events[EventName(e)] = func(c *Coordinator) { c.Handle(2, e) }
		}
		appending := func(c *Coordinator) ID {
			if i := slices.IndexFunc(c.pending, func(p *pending) bool { return p.phase == PhaseAppend }); i >= 0 {
				return c.pending[i].id
			}
			return 2
		}
		events["appended"] = func(c *Coordinator) { c.Handle(2, Appended{appending(c)}) }
		events["append-voided"] = func(c *Coordinator) { c.Handle(2, AppendVoided{appending(c), errors.New("x")}) }
		everyCell(t, states, (*Coordinator).State, events, CoordinatorStates(), CoordinatorEvents(), CoordinatorImpossible())
	})
}

func everyCell[M any](t *testing.T, states map[string]func() M, state func(M) string, events map[string]func(M), stateNames, eventNames []string, impossible [][2]string) {
	if got := slices.Sorted(maps.Keys(states)); !slices.Equal(got, slices.Sorted(slices.Values(stateNames))) {
		t.Errorf("the test knows the states %v, listed are %v", got, stateNames)
	}
	if got := slices.Sorted(maps.Keys(events)); !slices.Equal(got, slices.Sorted(slices.Values(eventNames))) {
		t.Errorf("the test knows the events %v, listed are %v", got, eventNames)
	}
	for _, s := range stateNames {
		for _, e := range eventNames {
			m := states[s]()
			if got := state(m); got != s {
				t.Fatalf("led to %s, state is %s", s, got)
			}
			want := slices.Contains(impossible, [2]string{s, e})
			if got := panics(func() { events[e](m) }); got != want {
				t.Errorf("%s meets %s: panics %v, listed as impossible %v", s, e, got, want)
			}
		}
	}
}

// TestAbortedIDsAreBounded gives up many ids whose barriers never come.
func TestAbortedIDsAreBounded(t *testing.T) {
	b := NewBarriers(ExactlyOnce, 2, BarrierOptions{})
	b.Barrier(0, Barrier{ID: 1, Kind: Savepoint}, 1)
	const last = 10 * maxAbortedIDs
	for id := ID(2); id <= last; id++ {
		b.Abort(Abort{ID: id})
	}
	if n := len(b.aborted.ids); n > maxAbortedIDs {
		t.Errorf("%d ids are remembered", n)
	}
	for _, id := range []ID{2, last - 1, last} {
		if as := b.Barrier(1, Barrier{ID: id}, 1); len(as) != 0 {
			t.Errorf("barrier of aborted id %d: %v", id, as)
		}
	}
	// The savepoint is still pending, below the forgotten ids.
	if as := b.EndOfInput(1, 1); len(as) != 1 || b.State() != "preparing" {
		t.Errorf("the pending id was forgotten: %v, %v", as, b)
	}
}

func TestReasonsThatCount(t *testing.T) {
	counts := map[Reason]bool{
		Declined: true, NotReady: false, SyncFailed: true, AsyncFailed: true, Expired: true, Subsumed: false, AlignmentLimit: true,
		EnumeratorFailed: true, PublishFailed: true, AppendFailed: true, Busy: true, Cancelled: false, InputEnded: false,
	}
	for r := Declined; int(r) < len(reasonNames); r++ {
		want, ok := counts[r]
		if !ok || r.Counts() != want {
			t.Errorf("%v: counts %v, want %v (listed %v)", r, r.Counts(), want, ok)
		}
	}
}
