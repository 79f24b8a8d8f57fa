package staunch

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statestore"
)

// Setup is where a processor's constructor declares states, timers, counters
// and properties. The constructor runs once for the plan and once for each
// subtask and attempt: it must do no I/O.
type Setup struct {
	op     string
	store  *statestore.Store
	rt     *operator.Runtime // nil for the plan
	props  Properties
	timers []Timer
	faults []error
}

// DeclareState is called by the constructors of package state.
func (s *Setup) DeclareState(d statestore.Decl) *statestore.Table {
	t, err := s.store.Declare(d)
	if err != nil {
		s.faults = append(s.faults, fmt.Errorf("operator %q: %w", s.op, err))
	}
	return t
}

// ProcessingTimer declares a timer of processing time: one a key. It fires while
// the input lasts: what is set for later when bounded input has ended never
// fires, and one warning an operator tells in the log how many there were.
func (s *Setup) ProcessingTimer(name string) Timer {
	t := Timer{name, s.DeclareState(statestore.Decl{Name: name, Kind: checkpoint.TimerState, Domain: statestore.ProcessingTime})}
	s.timers = append(s.timers, t)
	return t
}

// Declare states what the guarantee analysis may rely on.
func (s *Setup) Declare(p Properties) { s.props |= p }

// Counter declares a metric.
func (s *Setup) Counter(name string) *Counter {
	if s.rt == nil {
		return &Counter{new(operator.Counter)}
	}
	return &Counter{s.rt.Counter(name)}
}

// Log is a logger with the operator's and subtask's names.
func (s *Setup) Log() *slog.Logger {
	if s.rt == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.rt.Log.With("operator", s.op, "subtask", s.rt.Instance.Subtask)
}

// Counter is a metric that grows.
type Counter struct{ n *operator.Counter }

// Add adds n.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Properties are promises of an operator's code.
type Properties uint8

const (
	// Absorbing: an input already in the state changes nothing and emits nothing.
	Absorbing = Properties(graph.Absorbing)
	// Reemits, with Absorbing: such an input may emit again what was emitted for it before.
	Reemits = Properties(graph.Reemits)
	// Nondeterministic: a replay may emit something else (random, external look-up, Now).
	Nondeterministic = Properties(graph.Nondeterministic)
)

func (p Properties) String() string { return graph.Properties(p).String() }

// Timer fires once for a key, at its time or soon after, unless the input ends
// before (ProcessingTimer). Timers can be compared with ==.
type Timer struct {
	name string
	t    *statestore.Table
}

// Name returns the name t was declared with.
func (t Timer) Name() string { return t.name }

// Set fires t at at for the key in hand, in place of what was set before. A
// time that has passed fires at once.
func (t Timer) Set(at time.Time) { t.t.TimerSet(at.UnixNano()) }

// Clear unsets t for the key in hand.
func (t Timer) Clear() { t.t.Delete() }

// At returns when t is set to fire for the key in hand.
func (t Timer) At() (time.Time, bool) {
	n, ok := t.t.TimerAt()
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(0, n).UTC(), true
}
