package checkpoint

import (
	"cmp"
	"fmt"
	"strings"
)

// The states of the Coordinator have names, for traces and so that a test can
// count how often each state met each event. Where a checkpoint and a savepoint
// are pending it is the one that is further.
const (
	coordinatorStarting    = "starting" // some subtask is not ready
	coordinatorIdle        = "idle"
	coordinatorEnumerators = "enumerators"
	coordinatorAcks        = "acks"
	coordinatorPublish     = "publish"
	coordinatorAppend      = "append"
	coordinatorUndecided   = "undecided" // the log does not answer
	coordinatorFailing     = "failing"   // FailJob was returned
	coordinatorClosing     = "closing"   // the attempt has ended, an append is in flight
	coordinatorStopped     = "stopped"
)

// State names the state: one of CoordinatorStates.
func (c *Coordinator) State() string {
	switch c.halt {
	case stopped:
		return coordinatorStopped
	case closing:
		return coordinatorClosing
	case failing:
		return coordinatorFailing
	}
	if c.undecided {
		return coordinatorUndecided
	}
	furthest := Phase(0)
	for _, p := range c.pending {
		furthest = max(furthest, p.phase)
	}
	switch furthest {
	case PhaseEnumerators:
		return coordinatorEnumerators
	case PhaseAcks:
		return coordinatorAcks
	case PhasePublish:
		return coordinatorPublish
	case PhaseAppend:
		return coordinatorAppend
	}
	if len(c.notReady()) > 0 {
		return coordinatorStarting
	}
	return coordinatorIdle
}

// String is State, for traces.
func (c *Coordinator) String() string { return c.State() }

// CoordinatorStates lists the names that State returns.
func CoordinatorStates() []string {
	return []string{coordinatorStarting, coordinatorIdle, coordinatorEnumerators, coordinatorAcks, coordinatorPublish,
		coordinatorAppend, coordinatorUndecided, coordinatorFailing, coordinatorClosing, coordinatorStopped}
}

// CoordinatorImpossible lists the cells (state, event) that panic, whatever the
// event carries: none of them can come from a leader that answers each action
// once, and begins and ends an attempt once. What subtasks and users send is not
// among them: it may be late, doubled or of another attempt.
func CoordinatorImpossible() [][2]string {
	var cells [][2]string
	in := func(state string, events ...string) {
		for _, event := range events {
			cells = append(cells, [2]string{state, event})
		}
	}
	// Nothing was asked for before all subtasks are ready.
	in(coordinatorStarting, "enumerators-snapshotted", "enumerators-failed", "expired", "published", "sinks-committed", "sinks-failed", "committed-appended")
	// The answers to an Append. (Undecided may also be the Committed record.)
	for _, state := range []string{coordinatorStarting, coordinatorIdle, coordinatorEnumerators, coordinatorAcks, coordinatorPublish} {
		in(state, "appended", "append-voided")
	}
	// Subtasks may be ready before the attempt is started, and nothing more.
	for _, state := range CoordinatorStates() {
		if state != coordinatorStarting && state != coordinatorIdle {
			in(state, "started")
		}
	}
	in(coordinatorClosing, "attempt-ended")
	return cells
}

var coordinatorImpossible = func() map[[2]string]bool {
	cells := map[[2]string]bool{}
	for _, cell := range CoordinatorImpossible() {
		cells[cell] = true
	}
	return cells
}()

// check panics for an event that cannot be. To go on would be to decide on a
// state that nobody knows how it came about.
func (c *Coordinator) check(e Event) {
	if cell := [2]string{c.State(), EventName(e)}; coordinatorImpossible[cell] {
		panic(fmt.Sprintf("checkpoint: event %s in state %s", cell[1], cell[0]))
	}
}

func compareIDs(a, b ID) int { return cmp.Compare(a, b) }

func compareSubtasks(a, b SubtaskID) int {
	if c := strings.Compare(a.Vertex, b.Vertex); c != 0 {
		return c
	}
	return cmp.Compare(a.Index, b.Index)
}
