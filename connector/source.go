package connector

import (
	"context"
	"errors"
)

// SourceSpec says what a source can promise. It is asked for at plan time, without I/O.
type SourceSpec struct {
	Replayable bool   // reads the same records again from an Offset
	Bounded    bool   // ends by itself
	System     string // what stands behind it, for the plan: "kafka orders@broker"
	Why        string // reason for a promise that is not given
}

// Source makes the enumerator (one a job) and the readers (one a subtask).
type Source[T any] interface {
	Spec() SourceSpec
	Enumerator(ctx context.Context, i Instance) (Enumerator, error)
	Reader(ctx context.Context, i Instance) (Reader[T], error)
}

// Offset is where to read next in a split.
type Offset struct {
	N     int64  `cbor:"1,keyasint"`           // shown, and used for lag
	State []byte `cbor:"2,keyasint,omitempty"` // whatever else the reader needs
}

// Split is a part of a source that one reader reads in order.
type Split struct {
	ID     string
	Next   Offset
	End    *Offset // nil: unbounded
	Weight int64   // relative size, for an even assignment; 0: unknown
}

// Enumerator finds splits. Its methods are called on one goroutine, off the data path.
type Enumerator interface {
	// Discover returns splits that are new since the last call, and whether there can be more.
	Discover(ctx context.Context) (found []Split, more bool, err error)
	// Snapshot and Restore carry what the enumerator must remember (at least: which splits it returned).
	Snapshot() ([]byte, error)
	Restore([]byte) error
	Close() error
}

// Reader reads its splits. All methods are called by one goroutine and do not block.
type Reader[T any] interface {
	// Add hands a split over, to be read from Next.
	Add(Split) error
	// Poll appends records of one split to b, at most max, and says which split and what comes next in it.
	// No records and ErrEmpty: nothing now. io.EOF: that split is done; records
	// may come with it.
	Poll(b *Batch[T], max int) (split string, next Offset, err error)
	// Available is ready to receive from when Poll may have something.
	Available() <-chan struct{}
	Close() error
}

// CheckpointObserver is implemented by a Reader that wants to know of
// checkpoints whose every sink has committed. Committed is called off the data
// path, with the splits as they stood in that checkpoint; its error is logged.
type CheckpointObserver interface {
	Committed(ctx context.Context, id CheckpointID, splits []Split) error
}

// ErrPermanent is what every error of Permanent is.
var ErrPermanent = errors.New("connector: permanent error")

// Permanent marks an error that no restart can mend, such as input that is gone:
// the job fails at once, whatever its restart policy, and the error is what the
// operator reads. It may come from every method of a source or sink, and may be
// wrapped. A sentinel can be made of it.
func Permanent(err error) error { return &permanent{err} }

type permanent struct{ err error }

func (p *permanent) Error() string        { return p.err.Error() }
func (p *permanent) Unwrap() error        { return p.err }
func (p *permanent) Is(target error) bool { return target == ErrPermanent }

// ErrEmpty says that Poll has nothing now.
var ErrEmpty = errors.New("connector: nothing available")
