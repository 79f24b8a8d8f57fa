package checkpoint

import "fmt"

// ID numbers the checkpoints of a job from 1. Ids of a job only grow; one that
// was triggered but never logged may recur in a later generation.
type ID uint64

// SubtaskID names one subtask of the physical plan. Vertex is the name of the
// chain: the name of its head operator.
type SubtaskID struct {
	Vertex string `cbor:"1,keyasint"`
	Index  int    `cbor:"2,keyasint"`
}

func (s SubtaskID) String() string { return fmt.Sprintf("%s/%d", s.Vertex, s.Index) }

// Epoch fences effects: what carries a lower one is refused. Generation is the
// log slot of the coordinator's Takeover, Attempt one run of all subtasks
// within it, from 1.
type Epoch struct {
	Generation uint64 `cbor:"1,keyasint"`
	Attempt    uint64 `cbor:"2,keyasint"`
}

// Less orders epochs.
func (e Epoch) Less(o Epoch) bool {
	return e.Generation < o.Generation || e.Generation == o.Generation && e.Attempt < o.Attempt
}

func (e Epoch) String() string { return fmt.Sprintf("%d.%d", e.Generation, e.Attempt) }

// Mode is what the barriers of a job guarantee.
type Mode uint8

const (
	ExactlyOnce Mode = iota + 1 // channels block until the last barrier
	AtLeastOnce                 // channels never block
	AtMostOnce                  // as ExactlyOnce, with reservations at the sources
)

func (m Mode) String() string {
	switch m {
	case ExactlyOnce:
		return "exactly-once"
	case AtLeastOnce:
		return "at-least-once"
	case AtMostOnce:
		return "at-most-once"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Kind says what a barrier is for.
type Kind uint8

const (
	Periodic  Kind = iota // an ordinary checkpoint
	Savepoint             // pinned, never subsumed
	Final                 // triggered after all subtasks ended
)

// Barrier is what flows through the channels between the records of two
// epochs. AgeNanos is how old the checkpoint was when the trigger was sent: an
// age and not a time, since clocks differ.
type Barrier struct {
	ID       ID    `cbor:"1,keyasint"`
	Kind     Kind  `cbor:"2,keyasint,omitempty"`
	AgeNanos int64 `cbor:"3,keyasint,omitempty"`
}
