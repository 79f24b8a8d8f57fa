package checkpoint

import (
	"fmt"
	"strings"
)

// TimerKind names the Coordinator's timers.
type TimerKind uint8

const (
	TimerDue    TimerKind = iota + 1 // fires Due
	TimerExpire                      // fires TimerFired, one a checkpoint
)

func (k TimerKind) String() string {
	if k == TimerDue {
		return "due"
	}
	return "expire"
}

// SetTimer sets a timer, in place of one of the same kind and id.
type SetTimer struct {
	Kind TimerKind
	ID   ID    // TimerExpire
	At   int64 // Unix nanoseconds
}

// CancelTimer drops a timer. One that fires all the same is ignored.
type CancelTimer struct {
	Kind TimerKind
	ID   ID
}

// Triggered answers TriggerRequested and StopRequested with the id. A savepoint
// that was subsumed is triggered again, under another id.
type Triggered struct {
	ID    ID
	Token string
}

// Refused answers them if there will be no checkpoint.
type Refused struct {
	Token  string
	Reason Reason
	Detail string
}

// SnapshotEnumerators takes the source enumerators' part of a checkpoint, and
// holds their assignments until ReleaseAssignments.
type SnapshotEnumerators struct {
	ID   ID
	Kind Kind
}

// ReleaseAssignments lets assignments to a source subtask flow again: its part
// of the checkpoint is taken, or the checkpoint is given up.
type ReleaseAssignments struct {
	ID      ID
	Subtask SubtaskID
}

// SendTrigger sends a trigger mail.
type SendTrigger struct {
	Subtask SubtaskID
	Trigger Trigger
}

// Publish writes the manifest; the answer is Published. Acks are in the order
// of the plan.
type Publish struct {
	ID          ID
	Kind        Kind
	Parent      ID
	Uncommitted bool // some ack carries committables
	Acks        []Ack
	Stats       Stats
}

// Append appends the Checkpoint record; the answer is Appended, AppendVoided
// or Fenced, and Undecided any number of times before.
type Append struct {
	ID          ID
	Kind        Kind
	Parent      ID
	Uncommitted bool
}

// SendComplete tells every subtask.
type SendComplete struct{ Complete Complete }

// CommitSinks commits everything prepared up to ID, for as long as it takes;
// the answer is SinksCommitted. It may be asked for a higher id meanwhile.
type CommitSinks struct{ ID ID }

// AppendCommitted appends the Committed record; the answer is
// CommittedAppended.
type AppendCommitted struct{ ID ID }

// SendCommitted tells every subtask.
type SendCommitted struct{ Committed Committed }

// SendAbort tells every subtask.
type SendAbort struct{ Abort Abort }

// Dispose appends a Dispose record and then deletes what only these
// checkpoints hold.
type Dispose struct{ IDs []ID }

// Report hands over the statistics of a checkpoint: when it is in the log,
// again with Stats.Committed set when it is committed, or when it has failed.
type Report struct{ Stats Stats }

// ReportSkipped says that a trigger was due while a checkpoint was pending: it
// is left out and not queued. Skipped is the number so far.
type ReportSkipped struct{ Skipped int64 }

// ReportUndecided says that the log does not answer.
type ReportUndecided struct{ ID ID }

// FailJob fails the attempt; the restart policy decides what follows.
type FailJob struct{ Reason string }

// Finish ends the job: ID is the last checkpoint, in the log and committed. It
// is 0 with a Detail if a requested stop could not take one.
type Finish struct {
	ID     ID
	Detail string
}

// Closed answers AttemptEnded: nothing of the attempt can reach the log any
// more, so the checkpoint to restore may be chosen. Latest is the newest.
type Closed struct{ Latest ID }

// Stop ends the process: it is fenced. Nothing is rolled back.
type Stop struct{}

func (SetTimer) action()            {}
func (CancelTimer) action()         {}
func (Triggered) action()           {}
func (Refused) action()             {}
func (SnapshotEnumerators) action() {}
func (ReleaseAssignments) action()  {}
func (SendTrigger) action()         {}
func (Publish) action()             {}
func (Append) action()              {}
func (SendComplete) action()        {}
func (CommitSinks) action()         {}
func (AppendCommitted) action()     {}
func (SendCommitted) action()       {}
func (SendAbort) action()           {}
func (Dispose) action()             {}
func (Report) action()              {}
func (ReportSkipped) action()       {}
func (ReportUndecided) action()     {}
func (FailJob) action()             {}
func (Finish) action()              {}
func (Closed) action()              {}
func (Stop) action()                {}

func (a SetTimer) String() string {
	if a.Kind == TimerDue {
		return fmt.Sprintf("set timer due at %d", a.At)
	}
	return fmt.Sprintf("set timer %v %d at %d", a.Kind, a.ID, a.At)
}

func (a CancelTimer) String() string {
	if a.Kind == TimerDue {
		return "cancel timer due"
	}
	return fmt.Sprintf("cancel timer %v %d", a.Kind, a.ID)
}
func (a Triggered) String() string           { return fmt.Sprintf("triggered %d for %q", a.ID, a.Token) }
func (a SnapshotEnumerators) String() string { return fmt.Sprintf("snapshot enumerators %d", a.ID) }
func (a ReleaseAssignments) String() string {
	return fmt.Sprintf("release assignments %d to %v", a.ID, a.Subtask)
}

func (a Refused) String() string {
	return fmt.Sprintf("refused %q: %v (%s)", a.Token, a.Reason, a.Detail)
}

func (a SendTrigger) String() string {
	return fmt.Sprintf("send trigger %v age=%d to %v", a.Trigger.Barrier, a.Trigger.Barrier.AgeNanos, a.Subtask)
}

func (a Publish) String() string {
	return fmt.Sprintf("publish %v parent=%d acks=%d%s", Barrier{ID: a.ID, Kind: a.Kind}, a.Parent, len(a.Acks), uncommitted(a.Uncommitted))
}

func (a Append) String() string {
	return fmt.Sprintf("append %v parent=%d%s", Barrier{ID: a.ID, Kind: a.Kind}, a.Parent, uncommitted(a.Uncommitted))
}

func uncommitted(is bool) string {
	if is {
		return " uncommitted"
	}
	return ""
}
func (a SendComplete) String() string    { return fmt.Sprintf("send complete %d to all", a.Complete.ID) }
func (a CommitSinks) String() string     { return fmt.Sprintf("commit sinks up to %d", a.ID) }
func (a AppendCommitted) String() string { return fmt.Sprintf("append committed %d", a.ID) }
func (a SendCommitted) String() string {
	return fmt.Sprintf("send committed %d to all", a.Committed.ID)
}

func (a SendAbort) String() string {
	return fmt.Sprintf("send abort %d to all: %v (latest complete %d)", a.Abort.ID, a.Abort.Reason, a.Abort.LatestComplete)
}

func (a Dispose) String() string { return fmt.Sprintf("dispose %d", a.IDs) }

func (a Report) String() string {
	s := a.Stats
	if s.Failure != nil {
		return fmt.Sprintf("report %d failed in %v: %s", s.ID, s.Failure.Phase, s.Failure)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "report %d triggered=%d enumerated=%d acked=%d published=%d appended=%d", s.ID, s.Triggered, s.Enumerated, s.LastAck, s.Published, s.Appended)
	if s.Committed != 0 {
		fmt.Fprintf(&b, " committed=%d", s.Committed)
	}
	return b.String()
}
func (a ReportSkipped) String() string   { return fmt.Sprintf("report %d skipped", a.Skipped) }
func (a ReportUndecided) String() string { return fmt.Sprintf("report %d undecided", a.ID) }
func (a FailJob) String() string         { return "fail job: " + a.Reason }

func (a Finish) String() string {
	if a.ID == 0 {
		return "finish without checkpoint: " + a.Detail
	}
	return fmt.Sprintf("finish at %d", a.ID)
}
func (a Closed) String() string { return fmt.Sprintf("closed, latest %d", a.Latest) }
func (a Stop) String() string   { return "stop: fenced" }

// String says what failed, and who declined or else who was awaited: "expired,
// waiting for [gate/1]".
func (f Failure) String() string {
	s := f.Reason.String()
	if f.Subtask != nil {
		s += " at " + f.Subtask.String()
	}
	if f.Detail != "" {
		s += " (" + f.Detail + ")"
	}
	if len(f.Waiting) > 0 && f.Subtask == nil {
		s += ", waiting for " + joinSubtasks(f.Waiting)
	}
	return s
}
