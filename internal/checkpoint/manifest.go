package checkpoint

import "github.com/staunchdev/staunch/codec"

// Manifest is what a checkpoint keeps: everything needed to restore it, by
// reference to immutable objects, and the statistics of how it was taken. It is
// written before the Checkpoint record of the log names it; a manifest that no
// record names does not count.
type Manifest struct {
	Job       string `cbor:"1,keyasint"`
	ID        ID     `cbor:"2,keyasint"`
	Lineage   uint64 `cbor:"3,keyasint"`
	Epoch     Epoch  `cbor:"4,keyasint"`
	Parent    ID     `cbor:"5,keyasint,omitempty"`
	Kind      Kind   `cbor:"6,keyasint,omitempty"`
	Mode      Mode   `cbor:"7,keyasint"`
	HashID    uint8  `cbor:"8,keyasint"`
	HashSeed  uint64 `cbor:"9,keyasint"`
	Triggered int64  `cbor:"10,keyasint"` // Unix nanoseconds
	Finished  int64  `cbor:"11,keyasint"` // Unix nanoseconds; when the last ack was in

	Objects    []Object           `cbor:"20,keyasint,omitempty"` // what Ref.Object indexes
	Operators  []OperatorManifest `cbor:"21,keyasint,omitempty"`
	InFlight   []InFlight         `cbor:"22,keyasint,omitempty"`
	Statistics *Ref               `cbor:"23,keyasint,omitempty"` // one entry: the Stats as CBOR
}

// Object is an object of the store that holds runs.
type Object struct {
	Name string   `cbor:"1,keyasint"`
	ID   [16]byte `cbor:"2,keyasint"` // part of the checksum of every block in it
	Size int64    `cbor:"3,keyasint"`
}

// Ref names a run: a sorted sequence of blocks in an object, or inline.
type Ref struct {
	Object   int       `cbor:"1,keyasint"`           // index into Objects; -1: Inline
	Offset   int64     `cbor:"2,keyasint,omitempty"` // of the run in the object
	Length   int64     `cbor:"3,keyasint"`           // of the run: blocks, index, trailer
	IndexOff int64     `cbor:"4,keyasint,omitempty"` // of the index, from Offset
	IndexCRC uint32    `cbor:"5,keyasint"`           // crc32c of the index
	Kind     RunKind   `cbor:"6,keyasint"`
	Blocks   int       `cbor:"7,keyasint"`
	Entries  int64     `cbor:"8,keyasint"`
	Deletes  int64     `cbor:"9,keyasint,omitempty"`
	Bytes    int64     `cbor:"10,keyasint"`           // of keys and values before compression
	Clip     HashRange `cbor:"11,keyasint"`           // what of it counts
	MinTimer int64     `cbor:"12,keyasint,omitempty"` // least timer, seconds; timer runs
	Inline   []byte    `cbor:"13,keyasint,omitempty"` // the run itself, at most 4 KiB
}

// RunKind says what the entries of a run are.
type RunKind uint8

const (
	BaseRun  RunKind = iota + 1 // all live entries of an interval
	DeltaRun                    // changes since an older base: entries and tombstones
	ListRun                     // suffixes of lists
	TimerRun                    // timers
	TableRun                    // not hashed: splits, committables, operator state, statistics
)

// Segment is one hash interval of one state: a base and what changed since.
type Segment struct {
	Range  HashRange `cbor:"1,keyasint"`
	Base   Ref       `cbor:"2,keyasint"`
	Deltas []Ref     `cbor:"3,keyasint,omitempty"`
}

// OperatorManifest is one operator of a Manifest.
type OperatorManifest struct {
	Name         string           `cbor:"1,keyasint"`
	Kind         string           `cbor:"2,keyasint"`
	Parallelism  int              `cbor:"3,keyasint"`
	Key          *codec.Schema    `cbor:"4,keyasint,omitempty"`
	States       []StateManifest  `cbor:"5,keyasint,omitempty"`
	Lists        []ListManifest   `cbor:"6,keyasint,omitempty"`
	Splits       *Ref             `cbor:"7,keyasint,omitempty"` // one entry a split: id -> Split
	Enumerator   *Ref             `cbor:"8,keyasint,omitempty"` // one entry: what the enumerator remembers
	Committables *Ref             `cbor:"9,keyasint,omitempty"` // one entry a committable: id -> Committable
	Watermarks   []RangeWatermark `cbor:"10,keyasint,omitempty"`
	Finished     []int            `cbor:"11,keyasint,omitempty"` // subtasks that had ended
	Records      int64            `cbor:"12,keyasint,omitempty"` // what a source emitted, or a sink took, over the life of the job
}

// StateManifest is one keyed state of an OperatorManifest.
type StateManifest struct {
	Name     string        `cbor:"1,keyasint"`
	Kind     StateKind     `cbor:"2,keyasint"`
	Sub      *codec.Schema `cbor:"3,keyasint,omitempty"`
	Value    *codec.Schema `cbor:"4,keyasint,omitempty"`
	TTL      int64         `cbor:"5,keyasint,omitempty"`
	TTLFloor int64         `cbor:"6,keyasint,omitempty"` // entries written before were dead; Unix seconds
	Segments []Segment     `cbor:"7,keyasint,omitempty"`
	Entries  int64         `cbor:"8,keyasint"`
	Bytes    int64         `cbor:"9,keyasint"`
}

// ListManifest is one operator state: one entry an element.
type ListManifest struct {
	Name string   `cbor:"1,keyasint"`
	Mode ListMode `cbor:"2,keyasint"`
	Run  Ref      `cbor:"3,keyasint"`
}

// RangeWatermark is the watermark of the keys of a range (or of subtask
// Range.Lo where the operator is not keyed).
type RangeWatermark struct {
	Range     HashRange `cbor:"1,keyasint"`
	Watermark int64     `cbor:"2,keyasint"`
	Held      int64     `cbor:"3,keyasint"`
}

// InFlight is the data of one old channel that a barrier overtook, in order,
// output part after input part.
type InFlight struct {
	Channel [2]SubtaskID `cbor:"1,keyasint"` // sender, receiver
	Input   string       `cbor:"2,keyasint"` // operator and port of the receiver
	Edge    codec.Schema `cbor:"3,keyasint"`
	Runs    []Ref        `cbor:"4,keyasint"`
}
