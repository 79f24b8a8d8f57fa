package sim

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

var coverageFlag = flag.Bool("coverage", false, "print how often each protocol state met each event, and fail for cells that were never visited")

// A cell that is listed as impossible fails the seed at the moment of the visit,
// also where a subtask makes the panic an error of its own.
func TestImpossibleCellFailsTheSeed(t *testing.T) {
	for at := range impossible {
		w := &world{}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v does not panic", at)
				}
			}()
			w.observe(at.state, at.event)
		}()
		if w.broken == nil {
			t.Errorf("%v does not fail the seed", at)
		}
	}
}

// Every cell that is listed is one of the matrix, and not one that the machine
// keeps out by itself.
func TestImpossibleCellsAreInTheMatrix(t *testing.T) {
	left := maps.Clone(impossible)
	for _, m := range matrices() {
		for _, s := range m.states {
			for _, e := range m.events {
				at := cell{m.prefix + s, e}
				if _, listed := left[at]; listed && slices.Contains(m.panics, [2]string{s, e}) {
					t.Errorf("the machine panics at %v: it need not be listed", at)
				}
				delete(left, at)
			}
		}
	}
	for at := range left {
		t.Errorf("%v is no cell", at)
	}
}

// matrix is one state machine's part of the coverage.
type matrix struct {
	prefix         string // of the states
	states, events []string
	panics         [][2]string // in the machine itself
}

func matrices() []matrix {
	return []matrix{
		{"", checkpoint.BarrierStates(), checkpoint.BarrierEvents(), checkpoint.BarrierImpossible()},
		{"coordinator ", checkpoint.CoordinatorStates(), checkpoint.CoordinatorEvents(), checkpoint.CoordinatorImpossible()},
	}
}

// reason says why a cell cannot be visited; "" if it can.
func (m matrix) reason(state, event string) string {
	if slices.Contains(m.panics, [2]string{state, event}) {
		return "the machine panics"
	}
	return impossible[cell{m.prefix + state, event}]
}

// checkCoverage prints the matrices and finds cells that were not visited, or
// that were although they cannot be.
func checkCoverage(t *testing.T, c *Coverage, seeds int) {
	rarest, fewest := cell{}, int64(math.MaxInt64)
	for _, m := range matrices() {
		var b strings.Builder
		fmt.Fprintf(&b, "%-18s", "")
		for _, s := range m.states {
			fmt.Fprintf(&b, " %12.12s", s)
		}
		for _, e := range m.events {
			fmt.Fprintf(&b, "\n%-18.18s", e)
			for _, s := range m.states {
				at := cell{m.prefix + s, e}
				n, why := c.cells[at], m.reason(s, e)
				if n.runs < fewest && why == "" {
					rarest, fewest = at, n.runs
				}
				switch {
				case n.times > 0:
					fmt.Fprintf(&b, " %12d", n.times)
				case why != "":
					fmt.Fprintf(&b, " %12s", "-")
				default:
					fmt.Fprintf(&b, " %12s", "NEVER")
				}
				switch {
				case n.times > 0 && why != "":
					t.Errorf("%s met %s %d times, but is listed as impossible: %s", at.state, e, n.times, why)
				case n.times == 0 && why == "":
					t.Errorf("%s never met %s, and is not listed as impossible", at.state, e)
				}
			}
		}
		t.Log("\n" + b.String())
	}
	t.Logf("accept: the cell that fewest seeds visited, %d of %d, is %s of %s: as many other seeds would miss it with a chance of %.0e",
		fewest, seeds, rarest.event, rarest.state, math.Exp(-float64(fewest)))
}
