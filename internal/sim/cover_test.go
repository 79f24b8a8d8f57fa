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

// cells are some cells of the coverage matrix.
type cells struct {
	machine        string // prefix of the states
	events, states []string
	why            string
}

// unreached are cells that cannot be visited in the whole engine, besides those
// that panic whatever the event carries: the machine allows them, but nobody
// sends the event then.
var unreached = []cells{
	{"", []string{"limit"}, []string{"idle", "preparing", "preparing-aborted", "ended"}, "nothing is held back"},
	{"", []string{"complete"}, []string{"preparing-aborted"}, "an abort comes behind the completion of any lower id, in one mailbox"},

	{"coordinator ", []string{"pinned", "unpinned", "stop-requested"}, coordinatorStates, "the leader has no verb for it yet"},
	{"coordinator ", []string{"fenced"}, coordinatorStates, "a fenced leader ends by itself"},
	{"coordinator ", []string{"started"}, except(coordinatorStates, "starting"), "it is the first event"},
	{"coordinator ", except(coordinatorEvents, "attempt-ended"), []string{"failing"}, "the leader ends the attempt before it handles anything else"},
	{"coordinator ", []string{"attempt-ended"}, []string{"closing", "stopped"}, "an attempt ends once"},
	{"coordinator ", []string{"subtask-ready"}, except(coordinatorStates, "starting", "stopped"), "subtasks are ready once, and nothing is pending before all are"},
	{"coordinator ", except(coordinatorEvents, "started", "due", "subtask-ready", "subtask-ended", "attempt-ended"), []string{"starting"},
		"nothing is pending or asked for before all subtasks are ready"},
	{"coordinator ", []string{"trigger-requested"}, []string{"closing", "stopped"}, "the leader keeps it for the next attempt"},
	{"coordinator ", []string{"enumerators-snapshotted", "enumerators-failed"}, []string{"acks", "publish", "append", "undecided", "closing"},
		"enumerators are asked for one id after the other"},
	{"coordinator ", []string{"undecided"}, []string{"idle", "enumerators", "acks", "publish", "stopped"}, "it is about the append that is in flight"},
	{"coordinator ", []string{"appended", "append-voided"}, []string{"stopped"}, "the attempt closes when its append is decided"},
	{"coordinator ", []string{"committed-appended"}, []string{"undecided"}, "the log takes one record at a time"},
}

// rare are cells that need several things at once: some seeds visit them, and
// not every run has such a seed.
var rare = []cells{
	{"", barrierEvents, []string{"aligning-several"}, "savepoints have no verb yet; else it takes an abort that comes after the next barrier"},
	{"", []string{"fail"}, []string{"aligning", "preparing", "preparing-aborted"}, "an async phase fails long after its checkpoint was given up"},
	{"", []string{"complete"}, []string{"aligning", "preparing"}, "the mail comes after the next barrier"},
	{"coordinator ", []string{"due", "expired", "published", "sinks-committed", "sinks-failed", "committed-appended", "subtask-ended"}, []string{"closing"},
		"it was on its way when the attempt ended, and an append is undecided"},
	{"coordinator ", []string{"acked", "declined", "published", "sinks-committed", "sinks-failed", "attempt-ended"}, []string{"undecided"}, "the log does not answer for long"},
	{"coordinator ", []string{"declined"}, []string{"publish"}, "a decline of an older id that comes late"},
	{"coordinator ", []string{"published"}, []string{"append"}, "an older manifest was being written for so long"},
	{"coordinator ", []string{"sinks-failed"}, []string{"publish", "append", "stopped"}, "sinks commit for longer than the next checkpoint takes"},
	{"coordinator ", []string{"enumerators-failed"}, []string{"idle"}, "an enumerator fails after its checkpoint was given up"},
}

// find returns why a cell is among some.
func (m matrix) find(some []cells, state, event string) string {
	for _, c := range some {
		if c.machine == m.prefix && slices.Contains(c.states, state) && slices.Contains(c.events, event) {
			return c.why
		}
	}
	return ""
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
	return m.find(unreached, state, event)
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
				case m.find(rare, s, e) != "":
					fmt.Fprintf(&b, " %12s", "rare")
					continue
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
