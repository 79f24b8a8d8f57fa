package ckptlog

import (
	"errors"
	"fmt"
)

var (
	// ErrFenced says that another owner has taken the job over. The log of the
	// fenced owner is dead, and the process must stop: it rolls nothing back,
	// since the other may already have built on what it did.
	ErrFenced = errors.New("fenced by another owner of the job")

	// ErrUndecided says that it is not known whether the record of the last
	// Append is in the log. Nothing may be concluded from it and nothing else
	// appended, until Log.Retry or Log.GiveUp has decided it.
	ErrUndecided = errors.New("it is undecided whether the record is in the log")

	// ErrVoided says that the record is not in the log and will never be.
	ErrVoided = errors.New("the record was given up and is not in the log")

	// ErrEmpty says that there was no log when it was read. Another process may
	// have begun one since: only TakeOver can tell.
	ErrEmpty = errors.New("there is no checkpoint log")

	// ErrOtherJob says that the log belongs to a job of another name.
	ErrOtherJob = errors.New("the checkpoint log belongs to another job")

	// ErrRefused says that a record may not follow what is in the log. Nothing
	// was written.
	ErrRefused = errors.New("the log does not admit the record")

	// ErrBusy says that another call on the Log is outstanding.
	ErrBusy = errors.New("another call on the log is outstanding")

	// ErrVersion says that a record is of a format that this program does not know.
	ErrVersion = errors.New("the log was written by a newer version")

	// ErrCorrupt is what every CorruptError is.
	ErrCorrupt = errors.New("damaged checkpoint log")
)

// CorruptError is damage: an object that is there and is not what it must be. It
// is never taken for a record that was not written.
type CorruptError struct {
	Object          string
	Offset          int64
	What            string // what is wrong: "checksum", "slot", ...
	Expected, Found string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v: %s, offset %d: %s: expected %s, found %s", ErrCorrupt, e.Object, e.Offset, e.What, e.Expected, e.Found)
}

// Is makes a CorruptError an ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
