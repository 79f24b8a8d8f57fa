package checkpoint

import "github.com/staunchdev/staunch/codec"

// Trigger asks a subtask without live inputs (a source, or one whose inputs
// have all ended) to begin a checkpoint.
type Trigger struct {
	Barrier Barrier
	Epoch   Epoch
}

// Ack says that a subtask's part of a checkpoint is durable.
type Ack struct {
	Subtask   SubtaskID
	Epoch     Epoch
	ID        ID
	Operators []OperatorAck
	Stats     SubtaskStats
}

// OperatorAck is one operator's part of an Ack.
type OperatorAck struct {
	Operator     string
	Range        HashRange     // of keyed state
	States       []StateAck    // keyed states and timers
	Lists        []ListAck     // operator state
	Splits       []Split       // of a source
	Committables []Committable // of a sink: every one not yet confirmed, whatever its id
	Watermark    int64         // last watermark taken and forwarded
	Held         int64         // watermark taken but not yet forwarded; equal to Watermark if none
	Finished     bool          // the operator had ended before the barrier
	Records      int64         // records that this subtask of a source emitted or of a sink took, over the life of the job
}

// StateAck names what one subtask wrote of one keyed state.
type StateAck struct {
	State    string
	Objects  []Object // the objects that Segments index into
	Segments []Segment
	Entries  int64
	Bytes    int64
	// TTLFloor, of a state with a TTL: what was written before was dead. Unix seconds.
	TTLFloor int64
}

// ListAck is operator state: elements that are redistributed by Mode.
type ListAck struct {
	State    string
	Mode     ListMode
	Elements [][]byte
}

// ListMode says how operator state is redistributed at another parallelism.
type ListMode uint8

const (
	SplitList ListMode = iota + 1 // elements are dealt out
	UnionList                     // everyone gets all
	Broadcast                     // one copy, the same for all
)

// Split is a split's position in a checkpoint: where to read next.
type Split struct {
	ID    string `cbor:"1,keyasint"`
	N     int64  `cbor:"2,keyasint"`
	State []byte `cbor:"3,keyasint,omitempty"`
	// End is where the split ends, if it is bounded by an offset.
	End      *int64 `cbor:"4,keyasint,omitempty"`
	EndState []byte `cbor:"5,keyasint,omitempty"`
	Weight   int64  `cbor:"6,keyasint,omitempty"`
	Done     bool   `cbor:"7,keyasint,omitempty"` // read to its end
}

// Committable is a prepared transaction of a sink. Prepared is the checkpoint
// at whose barrier it was made.
type Committable struct {
	ID       string `cbor:"1,keyasint"`
	Prepared ID     `cbor:"2,keyasint"`
	Subtask  int    `cbor:"3,keyasint"`
	Data     []byte `cbor:"4,keyasint,omitempty"`
}

// Decline says that a subtask cannot take part in a checkpoint.
type Decline struct {
	Subtask SubtaskID
	Epoch   Epoch
	ID      ID
	Reason  Reason
	Detail  string
}

// Complete says that a checkpoint is in the log.
type Complete struct {
	ID    ID
	Epoch Epoch
}

// Committed says that every sink has committed everything prepared up to ID:
// sinks drop those committables from their state.
type Committed struct {
	ID    ID
	Epoch Epoch
}

// Abort says that a checkpoint is given up. It discards only the snapshot:
// state objects, in-flight recordings, blocked channels, never what a sink
// prepared. LatestComplete heals a lost Complete.
type Abort struct {
	ID             ID
	Epoch          Epoch
	LatestComplete ID
	Reason         Reason
}

// HashRange is a closed interval of key hashes.
type HashRange struct {
	Lo uint64 `cbor:"1,keyasint"`
	Hi uint64 `cbor:"2,keyasint"`
}

// Contains says whether h lies in the range.
func (r HashRange) Contains(h uint64) bool { return r.Lo <= h && h <= r.Hi }

// Overlaps says whether the ranges share a hash.
func (r HashRange) Overlaps(o HashRange) bool { return r.Lo <= o.Hi && o.Lo <= r.Hi }

// OperatorMeta is what the plan knows of an operator with state; it is the
// same for all subtasks and goes into each manifest.
type OperatorMeta struct {
	Name        string
	Kind        string // "source", "process", "sink", ...
	Vertex      string // the chain it runs in
	Parallelism int
	Key         *codec.Schema // nil: not keyed
	States      []StateMeta
}

// StateMeta describes one declared state.
type StateMeta struct {
	Name   string
	Kind   StateKind
	Sub    *codec.Schema // the map key of a map state
	Value  *codec.Schema // nil for timers
	TTL    int64         // nanoseconds; 0: none
	Former []string      // names under which older checkpoints hold it
}

// StateKind is the layout of a state.
type StateKind uint8

const (
	ValueState StateKind = iota + 1
	ListState
	MapState
	TimerState
)

func (k StateKind) String() string {
	switch k {
	case ValueState:
		return "value"
	case ListState:
		return "list"
	case MapState:
		return "map"
	case TimerState:
		return "timers"
	}
	return "unknown"
}
