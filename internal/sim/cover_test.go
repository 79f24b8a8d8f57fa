package sim

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

var coverageFlag = flag.Bool("coverage", false, "print how often each protocol state met each event, and fail for cells that were never visited")

// unreached are cells of the coverage matrix that cannot be visited in the
// whole engine, besides those that panic whatever the event carries: the machine
// allows them, but nobody sends the event then.
var unreached = []struct {
	machine        string // prefix of the states
	events, states []string
	why            string
}{
	{"", barrierEvents, []string{"aligning-several"}, "one checkpoint is pending at a time: savepoints have no verb yet"},
	{"", []string{"fail"}, []string{"preparing", "preparing-aborted"}, "the sync phase comes after Prepare, and one snapshot is taken at a time"},
	{"", []string{"limit"}, []string{"idle", "preparing", "preparing-aborted", "ended"}, "nothing is held back"},
	{"", []string{"complete"}, []string{"preparing-aborted"}, "an abort comes behind the completion of any lower id, in one mailbox"},

	{"coordinator ", []string{"pinned", "unpinned", "stop-requested"}, coordinatorStates, "the leader has no verb for it yet"},
	{"coordinator ", []string{"fenced"}, coordinatorStates, "a fenced leader ends by itself"},
	{"coordinator ", []string{"started"}, except(coordinatorStates, "starting"), "it is the first event"},
	{"coordinator ", except(coordinatorEvents, "attempt-ended"), []string{"failing"}, "the leader ends the attempt before it handles anything else"},
	{"coordinator ", []string{"attempt-ended"}, []string{"closing", "stopped"}, "an attempt ends once"},
	{"coordinator ", []string{"subtask-ready"}, except(coordinatorStates, "starting", "stopped"), "subtasks are ready once, and nothing is pending before all are"},
	{"coordinator ", except(coordinatorEvents, "started", "due", "trigger-requested", "subtask-ready", "subtask-ended", "attempt-ended"), []string{"starting"},
		"nothing is pending before all subtasks are ready"},
	{"coordinator ", []string{"trigger-requested"}, []string{"closing", "stopped"}, "the leader refuses it itself"},
	{"coordinator ", []string{"enumerators-snapshotted", "enumerators-failed"}, []string{"acks", "publish", "append", "undecided", "closing"},
		"enumerators are asked for one id after the other"},
	{"coordinator ", []string{"undecided"}, []string{"idle", "enumerators", "acks", "publish", "stopped"}, "it is about the append that is in flight"},
	{"coordinator ", []string{"appended", "append-voided"}, []string{"stopped"}, "the attempt closes when its append is decided"},
	{"coordinator ", []string{"committed-appended"}, []string{"undecided"}, "the log takes one record at a time"},
}

var (
	barrierEvents     = checkpoint.BarrierEvents()
	coordinatorStates = checkpoint.CoordinatorStates()
	coordinatorEvents = checkpoint.CoordinatorEvents()
)

func except(all []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// matrix is one state machine's part of the coverage.
type matrix struct {
	prefix         string
	states, events []string
	impossible     [][2]string
}

func matrices() []matrix {
	return []matrix{
		{"", checkpoint.BarrierStates(), checkpoint.BarrierEvents(), checkpoint.BarrierImpossible()},
		{"coordinator ", checkpoint.CoordinatorStates(), checkpoint.CoordinatorEvents(), checkpoint.CoordinatorImpossible()},
	}
}

// reason says why a cell cannot be visited; "" if it can.
func (m matrix) reason(state, event string) string {
	if slices.Contains(m.impossible, [2]string{state, event}) {
		return "panics"
	}
	for _, u := range unreached {
		if u.machine == m.prefix && slices.Contains(u.states, state) && slices.Contains(u.events, event) {
			return u.why
		}
	}
	return ""
}

// checkCoverage prints the matrices and finds cells that were not visited, or
// that were although they cannot be.
func checkCoverage(t *testing.T, c *Coverage) {
	for _, m := range matrices() {
		var b strings.Builder
		fmt.Fprintf(&b, "%-18s", "")
		for _, s := range m.states {
			fmt.Fprintf(&b, " %12.12s", s)
		}
		for _, e := range m.events {
			fmt.Fprintf(&b, "\n%-18.18s", e)
			for _, s := range m.states {
				n, why := c.Count(m.prefix+s, e), m.reason(s, e)
				switch {
				case n > 0:
					fmt.Fprintf(&b, " %12d", n)
				case why != "":
					fmt.Fprintf(&b, " %12s", "-")
				default:
					fmt.Fprintf(&b, " %12s", "NEVER")
				}
				switch {
				case n > 0 && why != "":
					t.Errorf("%s%s met %s %d times, but is listed as impossible: %s", m.prefix, s, e, n, why)
				case n == 0 && why == "":
					t.Errorf("%s%s never met %s", m.prefix, s, e)
				}
			}
		}
		t.Log("\n" + b.String())
	}
}
