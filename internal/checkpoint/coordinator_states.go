package checkpoint

import (
	"cmp"
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
// event carries.
func CoordinatorImpossible() [][2]string {
	var cells [][2]string
	for _, state := range []string{coordinatorStarting, coordinatorIdle, coordinatorEnumerators, coordinatorAcks, coordinatorPublish} {
		cells = append(cells, [2]string{state, "appended"}, [2]string{state, "append-voided"})
	}
	return cells
}

func compareIDs(a, b ID) int { return cmp.Compare(a, b) }

func compareSubtasks(a, b SubtaskID) int {
	if c := strings.Compare(a.Vertex, b.Vertex); c != 0 {
		return c
	}
	return cmp.Compare(a.Index, b.Index)
}
