package statestore

import (
	"errors"
	"fmt"
)

// ErrBusy says that two snapshots are still being read.
var ErrBusy = errors.New("statestore: two snapshots are still being written")

// MaxValue bounds the encoding of one value, and MaxList the elements of a
// list: both are counted in 32 bits on disk.
const (
	MaxValue = 64 << 20
	MaxList  = 1 << 31
)

// Failure is the value of the panic by which a state access stops the subtask:
// user code could do nothing about it, and must not go on. The subtask recovers
// it and fails with Err.
type Failure struct{ Err error }

func (f Failure) Error() string { return f.Err.Error() }
func (f Failure) Unwrap() error { return f.Err }

func fail(format string, args ...any) { panic(Failure{fmt.Errorf(format, args...)}) }
