package checkpoint

// Stats is what is measured of one checkpoint, done or failed. It is kept in
// the manifest, or in the job's history if the checkpoint failed. Times are
// Unix nanoseconds, durations nanoseconds; 0 says that it did not happen.
type Stats struct {
	ID         ID             `cbor:"1,keyasint"`
	Kind       Kind           `cbor:"2,keyasint,omitempty"`
	Triggered  int64          `cbor:"3,keyasint"`
	Enumerated int64          `cbor:"4,keyasint,omitempty"` // enumerators' snapshots were in
	LastAck    int64          `cbor:"5,keyasint,omitempty"`
	Published  int64          `cbor:"6,keyasint,omitempty"` // manifest durable
	Appended   int64          `cbor:"7,keyasint,omitempty"` // record in the log
	Committed  int64          `cbor:"8,keyasint,omitempty"` // every sink had committed (in the history only)
	Bytes      int64          `cbor:"9,keyasint"`
	Subtasks   []SubtaskStats `cbor:"10,keyasint,omitempty"`
	Failure    *Failure       `cbor:"11,keyasint,omitempty"`
}

// Failure says why a checkpoint failed and whom it waited for.
type Failure struct {
	Reason  Reason      `cbor:"1,keyasint"`
	Detail  string      `cbor:"2,keyasint,omitempty"`
	Subtask *SubtaskID  `cbor:"3,keyasint,omitempty"` // who declined
	Waiting []SubtaskID `cbor:"4,keyasint,omitempty"` // who had not answered
	Phase   Phase       `cbor:"5,keyasint"`
	At      int64       `cbor:"6,keyasint"`
}

// SubtaskStats is one subtask's part of Stats.
type SubtaskStats struct {
	Subtask   SubtaskID      `cbor:"1,keyasint"`
	First     int64          `cbor:"2,keyasint,omitempty"` // first barrier or trigger handled
	Last      int64          `cbor:"3,keyasint,omitempty"` // last barrier handled
	Alignment int64          `cbor:"4,keyasint,omitempty"` // duration, first to last
	Prepare   int64          `cbor:"5,keyasint,omitempty"` // duration of the sinks' Prepare
	Sync      int64          `cbor:"6,keyasint,omitempty"` // duration of the sync phase
	Async     int64          `cbor:"7,keyasint,omitempty"` // duration of the async phase
	Acked     int64          `cbor:"8,keyasint,omitempty"` // when the ack was in
	Bytes     int64          `cbor:"9,keyasint,omitempty"`
	Channels  []ChannelStats `cbor:"10,keyasint,omitempty"`
	States    []StateStats   `cbor:"11,keyasint,omitempty"`
	Splits    []SplitStats   `cbor:"12,keyasint,omitempty"`
}

// ChannelStats is one input channel's part of SubtaskStats.
type ChannelStats struct {
	From    SubtaskID `cbor:"1,keyasint"`
	Arrived int64     `cbor:"2,keyasint"` // when its barrier was handled
	Queued  int64     `cbor:"3,keyasint"` // records that were queued ahead of the barrier when the first barrier of the checkpoint was handled
}

// StateStats is the size of one state's part.
type StateStats struct {
	Operator string `cbor:"1,keyasint"`
	State    string `cbor:"2,keyasint"`
	Entries  int64  `cbor:"3,keyasint"`
	Bytes    int64  `cbor:"4,keyasint"`
}

// SplitStats is the position of one split.
type SplitStats struct {
	Operator string `cbor:"1,keyasint"`
	Split    string `cbor:"2,keyasint"`
	N        int64  `cbor:"3,keyasint"`
}

// Phase is where a checkpoint stands.
type Phase uint8

const (
	PhaseEnumerators Phase = iota + 1 // waiting for the source enumerators
	PhaseAcks                         // waiting for subtasks
	PhasePublish                      // writing the manifest
	PhaseAppend                       // appending the record
	PhaseCommit                       // sinks commit
)

func (p Phase) String() string {
	switch p {
	case PhaseEnumerators:
		return "enumerators"
	case PhaseAcks:
		return "acks"
	case PhasePublish:
		return "publish"
	case PhaseAppend:
		return "append"
	case PhaseCommit:
		return "commit"
	}
	return "none"
}

// Reason is why a checkpoint was declined or aborted.
type Reason uint8

const (
	Declined         Reason = iota + 1 // a subtask could not take part
	NotReady                           // a subtask is still opening or restoring
	SyncFailed                         // a subtask's sync phase failed
	AsyncFailed                        // a subtask's async phase failed
	Expired                            // the timeout passed
	Subsumed                           // a newer barrier or append overtook it
	AlignmentLimit                     // too much was held back while aligning
	EnumeratorFailed                   // a source enumerator could not be snapshot
	PublishFailed                      // the manifest could not be written
	AppendFailed                       // the record was voided
	Busy                               // two snapshots are still being written
	Cancelled                          // the attempt ended, or the user cancelled
	InputEnded                         // the plan changed while it was triggered
)

var reasonNames = [...]string{"", "declined", "not ready", "sync phase failed", "async phase failed", "expired", "subsumed",
	"alignment limit", "enumerator failed", "publish failed", "append failed", "busy", "cancelled", "input ended"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) && r > 0 {
		return reasonNames[r]
	}
	return "unknown reason"
}

// Counts says whether a failure for this reason counts against the tolerated
// consecutive failures. Being subsumed, cancelled or overtaken by the end of
// an input is a normal end of a checkpoint; "not ready" says that the attempt
// has only begun.
func (r Reason) Counts() bool {
	switch r {
	case Subsumed, Cancelled, InputEnded, NotReady:
		return false
	}
	return true
}
