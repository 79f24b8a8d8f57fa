package checkpoint

import (
	"errors"
	"fmt"
)

// ErrCorrupt says that an object is there and is not what was written. It is
// never taken for "not written".
var ErrCorrupt = errors.New("checkpoint: corrupt")

// ErrNewer says that a newer version of the program wrote the object.
var ErrNewer = errors.New("checkpoint: written by a newer version")

// CorruptError says where an object differs from what was written. It matches
// ErrCorrupt.
type CorruptError struct {
	Object          string
	Offset          int64
	What            string
	Expected, Found string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is corrupt at offset %d: %s: expected %s, found %s", e.Object, e.Offset, e.What, e.Expected, e.Found)
}

func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
