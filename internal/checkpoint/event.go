package checkpoint

import "fmt"

// Event is something that the Coordinator is told.
type Event interface {
	event()
}

// Started begins the schedule of the attempt.
type Started struct{}

// Due is the timer of the schedule: TimerDue.
type Due struct{}

// TimerFired is the timer of one checkpoint: TimerExpire.
type TimerFired struct{ ID ID }

// TriggerRequested is a user's wish for a checkpoint or savepoint now. Token
// comes back in Triggered or Refused.
type TriggerRequested struct {
	Savepoint bool
	Token     string
}

// EnumeratorsSnapshotted says that the source enumerators' part of a
// checkpoint is held by the shell.
type EnumeratorsSnapshotted struct{ ID ID }

// EnumeratorsFailed says that it could not be made.
type EnumeratorsFailed struct {
	ID     ID
	Detail string
}

// Acked is a subtask's ack.
type Acked struct{ Ack Ack }

// DeclinedBy is a subtask's decline.
type DeclinedBy struct{ Decline Decline }

// Published says that the manifest of a checkpoint is durable, or that it
// could not be written.
type Published struct {
	ID  ID
	Err error
}

// Appended says that the Checkpoint record is in the log.
type Appended struct{ ID ID }

// Undecided says that it is not known yet whether the record is in the log:
// the shell goes on trying. It is reported, and is no failure.
type Undecided struct{ ID ID }

// AppendVoided says that the record is certainly not in the log and never will
// be.
type AppendVoided struct {
	ID  ID
	Err error
}

// SinksCommitted says that every sink has committed everything prepared up to
// ID.
type SinksCommitted struct{ ID ID }

// SinksFailed says that a commit failed and is tried again by the shell.
type SinksFailed struct {
	ID     ID
	Detail string
}

// CommittedAppended says that the Committed record is in the log.
type CommittedAppended struct{ ID ID }

// Pinned and Unpinned follow the Pin and Unpin records of the log.
type (
	Pinned   struct{ ID ID }
	Unpinned struct{ ID ID }
)

// SubtaskReady says that a subtask has restored its state and opened; its sinks
// have committed what the restored checkpoint names.
type SubtaskReady struct{ Subtask SubtaskID }

// SubtaskEnded says that a subtask has ended: a source all of whose splits are
// read, or a subtask that processed the end of each of its inputs. It lives on
// and takes part in every checkpoint until Finish.
type SubtaskEnded struct{ Subtask SubtaskID }

// StopRequested asks for a last checkpoint, or savepoint, and then Finish.
type StopRequested struct {
	Savepoint bool
	Token     string
}

// AttemptEnded says that the subtasks are gone, for a restart or for good. The
// answer is Closed, at once or when an append in flight is decided.
type AttemptEnded struct{}

// Fenced says that a newer generation owns the log.
type Fenced struct{}

func (Started) event()                {}
func (Due) event()                    {}
func (TimerFired) event()             {}
func (TriggerRequested) event()       {}
func (EnumeratorsSnapshotted) event() {}
func (EnumeratorsFailed) event()      {}
func (Acked) event()                  {}
func (DeclinedBy) event()             {}
func (Published) event()              {}
func (Appended) event()               {}
func (Undecided) event()              {}
func (AppendVoided) event()           {}
func (SinksCommitted) event()         {}
func (SinksFailed) event()            {}
func (CommittedAppended) event()      {}
func (Pinned) event()                 {}
func (Unpinned) event()               {}
func (SubtaskReady) event()           {}
func (SubtaskEnded) event()           {}
func (StopRequested) event()          {}
func (AttemptEnded) event()           {}
func (Fenced) event()                 {}

// EventName names the kind of an event: one of CoordinatorEvents.
func EventName(e Event) string {
	switch e.(type) {
	case Started:
		return "started"
	case Due:
		return "due"
	case TimerFired:
		return "expired"
	case TriggerRequested:
		return "trigger-requested"
	case EnumeratorsSnapshotted:
		return "enumerators-snapshotted"
	case EnumeratorsFailed:
		return "enumerators-failed"
	case Acked:
		return "acked"
	case DeclinedBy:
		return "declined"
	case Published:
		return "published"
	case Appended:
		return "appended"
	case Undecided:
		return "undecided"
	case AppendVoided:
		return "append-voided"
	case SinksCommitted:
		return "sinks-committed"
	case SinksFailed:
		return "sinks-failed"
	case CommittedAppended:
		return "committed-appended"
	case Pinned:
		return "pinned"
	case Unpinned:
		return "unpinned"
	case SubtaskReady:
		return "subtask-ready"
	case SubtaskEnded:
		return "subtask-ended"
	case StopRequested:
		return "stop-requested"
	case AttemptEnded:
		return "attempt-ended"
	case Fenced:
		return "fenced"
	}
	panic(fmt.Sprintf("checkpoint: event %T", e))
}

// CoordinatorEvents lists the names that EventName returns.
func CoordinatorEvents() []string {
	return []string{"started", "due", "expired", "trigger-requested", "enumerators-snapshotted", "enumerators-failed",
		"acked", "declined", "published", "appended", "undecided", "append-voided", "sinks-committed", "sinks-failed",
		"committed-appended", "pinned", "unpinned", "subtask-ready", "subtask-ended", "stop-requested", "attempt-ended", "fenced"}
}
