package checkpoint

import (
	"fmt"
	"strings"
)

// Action is something that a state machine wants done. The shell carries out a
// list of actions in its order, and reports what becomes of them as events.
// Each action is one of the structs of this file (what Barriers asks of a
// subtask) or of order.go (what the Coordinator asks of its shell).
type Action interface {
	fmt.Stringer
	action()
}

// AlignmentStarted says that the first barrier of a checkpoint was handled (or
// its trigger, where all inputs are about to end): the shell notes how many
// records are queued in each channel, for ChannelStats.Queued.
type AlignmentStarted struct{ Barrier Barrier }

// Block says that nothing more may be taken from a channel until Unblock. What
// arrives in it is still received into its bounded queue.
type Block struct {
	Channel int
	ID      ID
}

// Unblock releases a channel.
type Unblock struct {
	Channel int
	ID      ID
}

// Begin says that every barrier has arrived: the shell takes no record, runs
// the sinks' Prepare on the executor and then calls Barriers.Prepared. Arrived
// holds, per channel, when its barrier was handled: 0 if the channel had ended.
type Begin struct {
	Barrier     Barrier
	First, Last int64
	Arrived     []int64
}

// Emit sends the barrier to all outputs that have not ended.
type Emit struct{ Barrier Barrier }

// Snapshot runs the sync phase, tail to head, starts the async phase on the
// executor and acknowledges when that is durable. A failure of either phase is
// reported by Barriers.Fail.
type Snapshot struct{ Barrier Barrier }

// SendDecline tells the coordinator that this subtask cannot take part.
type SendDecline struct {
	ID     ID
	Reason Reason
	Detail string
}

// ForwardCancel sends a cancel marker to all outputs that have not ended.
type ForwardCancel struct{ ID ID }

// Discard drops the snapshot of an aborted checkpoint: the async phase is
// stopped, each operator is told once. It touches no sink writer, no open
// transaction and no committable: the records before barrier id are before
// barrier id+1 too.
type Discard struct{ ID ID }

// NotifyComplete tells each operator, once, that a checkpoint is in the log.
type NotifyComplete struct{ ID ID }

func (AlignmentStarted) action() {}
func (Block) action()            {}
func (Unblock) action()          {}
func (Begin) action()            {}
func (Emit) action()             {}
func (Snapshot) action()         {}
func (SendDecline) action()      {}
func (ForwardCancel) action()    {}
func (Discard) action()          {}
func (NotifyComplete) action()   {}

func (a AlignmentStarted) String() string { return fmt.Sprintf("alignment started %v", a.Barrier) }
func (a Block) String() string            { return fmt.Sprintf("block ch%d for %d", a.Channel, a.ID) }
func (a Unblock) String() string          { return fmt.Sprintf("unblock ch%d from %d", a.Channel, a.ID) }
func (a Begin) String() string {
	return fmt.Sprintf("begin %v first=%d last=%d arrived=%v", a.Barrier, a.First, a.Last, a.Arrived)
}
func (a Emit) String() string           { return fmt.Sprintf("emit %v age=%d", a.Barrier, a.Barrier.AgeNanos) }
func (a Snapshot) String() string       { return fmt.Sprintf("snapshot %v", a.Barrier) }
func (a SendDecline) String() string    { return decline(a.ID, a.Reason, a.Detail) }
func (a ForwardCancel) String() string  { return fmt.Sprintf("forward cancel %d", a.ID) }
func (a Discard) String() string        { return fmt.Sprintf("discard %d", a.ID) }
func (a NotifyComplete) String() string { return fmt.Sprintf("notify complete %d", a.ID) }

func decline(id ID, r Reason, detail string) string {
	s := fmt.Sprintf("decline %d: %v", id, r)
	if detail != "" {
		s += " (" + detail + ")"
	}
	return s
}

func (b Barrier) String() string {
	switch b.Kind {
	case Savepoint:
		return fmt.Sprintf("%d savepoint", b.ID)
	case Final:
		return fmt.Sprintf("%d final", b.ID)
	}
	return fmt.Sprint(b.ID)
}

// joinSubtasks lists subtasks for a message, in the form "[gate/1 gate/2]".
func joinSubtasks(s []SubtaskID) string {
	names := make([]string, len(s))
	for i := range s {
		names[i] = s[i].String()
	}
	return "[" + strings.Join(names, " ") + "]"
}
