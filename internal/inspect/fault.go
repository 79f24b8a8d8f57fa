package inspect

import (
	"errors"
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// FaultKind tells apart what an operator treats differently: damage is final,
// what cannot be reached may be whole.
type FaultKind string

const (
	Damaged     FaultKind = "damaged"     // it is there and is not what was written
	Missing     FaultKind = "missing"     // it is named and is not there
	Unsupported FaultKind = "unsupported" // it is whole, and of a newer version
	Unreachable FaultKind = "unreachable" // the store did not answer
)

// Fault is what is wrong with an object. Of damage it says where, what was
// expected and what was found.
type Fault struct {
	Kind     FaultKind `json:"kind"`
	Object   string    `json:"object"`
	Block    *int      `json:"block,omitempty"` // number in its run; absent: not a block
	Offset   int64     `json:"offset_bytes"`    // in the object
	What     string    `json:"what,omitempty"`
	Expected string    `json:"expected,omitempty"`
	Found    string    `json:"found,omitempty"`
	Run      string    `json:"run,omitempty"` // what the run is for
	Detail   string    `json:"detail,omitempty"`
}

func (f Fault) String() string {
	switch f.Kind {
	case Damaged:
		at := fmt.Sprintf("offset %d", f.Offset)
		if f.Block != nil {
			at = fmt.Sprintf("block %d, offset %d", *f.Block, f.Offset)
		}
		return fmt.Sprintf("damaged: %s: %s: expected %s, found %s", at, f.What, f.Expected, f.Found)
	case Missing:
		return "missing: it is named and is not there"
	}
	return fmt.Sprintf("%s: %s", f.Kind, f.Detail)
}

func kindOf(err error) FaultKind {
	switch {
	case errors.Is(err, statefile.ErrCorrupt), errors.Is(err, checkpoint.ErrCorrupt), errors.Is(err, ckptlog.ErrCorrupt):
		return Damaged
	case errors.Is(err, storage.ErrNotFound):
		return Missing
	case errors.Is(err, statefile.ErrUnsupported), errors.Is(err, checkpoint.ErrNewer), errors.Is(err, ckptlog.ErrVersion):
		return Unsupported
	}
	return Unreachable
}

// faultOf describes err, which reading object returned.
func faultOf(object string, err error) Fault {
	f := Fault{Kind: kindOf(err), Object: object}
	var state *statefile.CorruptError
	var manifest *checkpoint.CorruptError
	var log *ckptlog.CorruptError
	switch {
	case errors.As(err, &state):
		f.Offset, f.What, f.Expected, f.Found = state.Offset, state.What, state.Expected, state.Found
		if state.Block >= 0 {
			f.Block = &state.Block
		}
	case errors.As(err, &manifest):
		f.Offset, f.What, f.Expected, f.Found = manifest.Offset, manifest.What, manifest.Expected, manifest.Found
	case errors.As(err, &log):
		f.Object, f.Offset, f.What, f.Expected, f.Found = log.Object, log.Offset, log.What, log.Expected, log.Found
	case f.Kind == Damaged:
		f.What, f.Expected, f.Found = "content", "what was written", err.Error()
	case f.Kind != Missing:
		f.Detail = err.Error()
	}
	return f
}
