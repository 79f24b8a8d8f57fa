package memstore

import (
	"errors"
	"fmt"

	"github.com/staunchdev/staunch/storage"
)

// Verb is what a call of a store does.
type Verb uint8

const (
	Create Verb = iota + 1
	Write       // a Writer begins
	Append      // a Writer's Write
	Commit      // a Writer's Commit
	ReadAt
	Stat
	List
	Delete
)

var verbNames = [...]string{"", "create", "write", "append", "commit", "read", "stat", "list", "delete"}

func (v Verb) String() string { return verbNames[v] }

// Op is one call, as hooks see it. Size is how many bytes are written or asked
// for (-1: to the end).
type Op struct {
	Verb Verb
	Name string // of the object; the prefix for List
	Off  int64  // ReadAt
	Size int64
}

func (o Op) String() string { return fmt.Sprintf("%s %s", o.Verb, o.Name) }

// Fate is what becomes of a call.
type Fate uint8

const (
	// Proceed carries the call out.
	Proceed Fate = iota
	// Refuse fails before anything happened. A create that is refused is
	// storage.ErrNotWritten.
	Refuse
	// LoseRequest has no effect, but the caller cannot know that.
	LoseRequest
	// LoseReply carries the call out, but the caller cannot know that.
	LoseReply
	// Delay takes effect later, by Disk.Land or, with After > 0, before the
	// After-th call that follows on the disk. The caller knows nothing.
	Delay
	// Unsynced makes a created object visible, but a crash may still lose it.
	// The reply is lost: the process died between the link and the sync of the
	// directory. The next create in the same directory that proceeds makes it
	// durable.
	Unsynced
	// Truncate returns fewer bytes of a read: Keep of them, and io.ErrUnexpectedEOF.
	Truncate
	// Damage returns the bytes of a read with the byte at Keep (modulo the
	// length) changed, and no error.
	Damage
)

// Outcome is what a Hook decides about a call. The zero Outcome carries it out.
type Outcome struct {
	Fate  Fate
	Err   error // what a failure says; nil: something fitting
	After int   // Delay
	Keep  int   // Truncate, Damage
}

// ErrNoReply is the cause of unknown outcomes, unless the Outcome names another.
var ErrNoReply = errors.New("no reply")

// ErrDead is what a handle returns after Kill, or after Disk.Crash.
var ErrDead = errors.New("memory store: the process that held this handle is gone")

// Unreachable is the outcome of a call that never got to the store.
func Unreachable() Outcome { return Outcome{Fate: Refuse, Err: storage.ErrUnreachable} }

// NotFound is the outcome of a call that finds nothing, whatever there is.
func NotFound() Outcome { return Outcome{Fate: Refuse, Err: storage.ErrNotFound} }
