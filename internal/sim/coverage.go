package sim

import (
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Coverage counts how often each state of the protocol's two machines met each
// event in one run, or in the runs that were added up. The states of the
// coordinator are prefixed with "coordinator ".
type Coverage struct{ cells map[cell]visits }

// cell is a state, with the prefix of its machine, and an event.
type cell struct{ state, event string }

// visits are how often a cell was visited, and by how many runs.
type visits struct{ times, runs int64 }

// NewCoverage returns an empty Coverage.
func NewCoverage() *Coverage { return &Coverage{map[cell]visits{}} }

// Add adds what another one counted.
func (c *Coverage) Add(o *Coverage) {
	for at, n := range o.cells {
		sum := c.cells[at]
		c.cells[at] = visits{sum.times + n.times, sum.runs + n.runs}
	}
}

// observe is told of each event of a machine before the machine is. It panics if
// the engine hands over what it never can: the seed fails.
func (w *world) observe(state, event string) {
	at := cell{state, event}
	if why := impossible[at]; why != "" {
		// A subtask makes a panic an error of its own, so this is noted before.
		w.fail("%s met %s, which is listed as impossible: %s", state, event, why)
		panic(w.broken)
	}
	if w.Cover != nil {
		w.Cover.cells[at] = visits{w.Cover.cells[at].times + 1, 1}
	}
}

// impossible says why a cell cannot be visited in the whole engine, though the
// machine allows it: nobody sends the event then. Cells that the machine itself
// does not allow are checkpoint.BarrierImpossible and CoordinatorImpossible; it
// panics there.
var impossible = func() map[cell]string {
	all := map[cell]string{}
	list := func(machine string, events, states []string, why string) {
		for _, s := range states {
			for _, e := range events {
				all[cell{machine + s, e}] = why
			}
		}
	}
	barriers := func(event, state, why string) { list("", []string{event}, []string{state}, why) }
	barriers("complete", "preparing-aborted", "an abort comes behind the completion of any lower id, in one mailbox")
	barriers("fail", "preparing-aborted", "an abort comes behind those of all lower ids, so their parts are dropped; the id's own is not begun yet")
	barriers("trigger", "aligning-several", "a trigger comes behind the aborts of all lower ids, in one mailbox, and no higher id was triggered when it was sent")
	barriers("limit", "aligning-several", "without savepoints two ids are aligning only where nothing is blocked, in AtLeastOnce")

	coordinator := func(events, states []string, why string) { list("coordinator ", events, states, why) }
	one := func(s ...string) []string { return s }
	states, events := checkpoint.CoordinatorStates(), checkpoint.CoordinatorEvents()
	coordinator(one("pinned", "unpinned", "stop-requested"), states, "the leader has no verb for it yet")
	coordinator(one("fenced"), states, "a fenced leader ends by itself")
	coordinator(one("started"), one("idle"), "the leader starts the attempt before it reads that a subtask is ready")
	coordinator(except(events, "attempt-ended", "started"), one("failing"), "the leader ends the attempt before it handles anything else")
	coordinator(one("attempt-ended"), one("stopped"), "the leader ends an attempt once, and none that has finished")
	coordinator(one("subtask-ready"), except(states, "starting", "stopped"), "subtasks are ready once, and nothing is pending before all are")
	coordinator(one("trigger-requested"), one("starting", "closing", "stopped"), "the leader keeps it until all subtasks are ready, of the next attempt if need be")
	coordinator(one("acked", "declined"), one("starting"), "nothing is triggered before all subtasks are ready")
	coordinator(one("enumerators-snapshotted", "enumerators-failed"), one("acks", "publish", "append", "undecided", "closing"),
		"enumerators are asked for one id after the other")
	coordinator(one("undecided"), one("starting", "idle", "enumerators", "acks", "publish", "stopped"), "it is about the append that is in flight")
	coordinator(one("appended", "append-voided"), one("stopped"), "the attempt closes when its append is decided")
	coordinator(one("committed-appended"), one("undecided"), "the log takes one record at a time")
	return all
}()

func except(all []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}
