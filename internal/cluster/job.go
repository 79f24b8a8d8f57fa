package cluster

import (
	"log/slog"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/storage"
)

// Job is what is to be run.
type Job struct {
	Name  string
	Plan  *graph.Plan
	Specs []operator.Spec // by node of the graph
	// EdgeHash has, by edge of the graph, the hash function of Hash edges: a
	// func(seed uint64) (func(T) uint64, error).
	EdgeHash []any
}

// Options say how a job is run. All defaults are already filled in.
type Options struct {
	Store storage.Store
	// Lock keeps a second start out while this process lives; nil: the store has
	// no such lock. Its error names the owner.
	Lock func() (release func(), err error)

	Mode       checkpoint.Mode
	Checkpoint CheckpointOptions
	Restart    RestartPolicy

	From          checkpoint.ID // restore this one; 0: the newest
	Fresh         bool          // start empty on a new lineage
	Takeover      bool          // though another owner lives
	AcceptRepeats bool          // go back behind what a sink has committed
	DropState     []string      // operators, or operator/state, whose state may be dropped

	ChannelCapacity int // batches a channel holds; 0: 8
	TrimEvery       int // records the log may hold above its floor; 0: 64
	// SealAfter is how long a run of state waits for others to share an object
	// and its sync; 0: not at all.
	SealAfter time.Duration
	// CancelDeadline is how long a subtask may take to stop before the job is
	// given up as stuck, and how long the end of a job that has succeeded, or is
	// being stopped, waits for a store that does not answer; 0: 30 s.
	CancelDeadline time.Duration

	Log     *slog.Logger
	OnEvent func(Event) // called in the leader's loop; must not block

	Env     Env     // nil: RealEnv
	Workers Workers // nil: goroutines of this process
	// Observe, if set, is told each event that a protocol state machine is about
	// to handle, with the state it meets.
	Observe func(state, event string)
	Owner   string // who this process is, for the log and for messages
}

// CheckpointOptions say when and how checkpoints are taken.
type CheckpointOptions struct {
	Interval       time.Duration // negative: only on demand and at the end
	Timeout        time.Duration
	MinPause       time.Duration
	FailAfter      int // consecutive failures that fail the attempt; <= 0: never
	Retain         int
	Inline         bool          // write snapshots on the subtasks' goroutines
	AlignmentLimit int64         // records held back while aligning that abort a checkpoint; 0: channels bound it
	SyncWarning    time.Duration // report a sync phase that takes longer; 0: 1 s
	GiveUpAppend   time.Duration // void an append whose outcome stays unknown for so long; 0: 30 s
}

// RestartPolicy says what follows the failure of an attempt.
type RestartPolicy struct {
	Attempts int           // consecutive ones; 0: for ever; negative: none
	Delay    time.Duration // before the first restart
	MaxDelay time.Duration
	Factor   float64       // 1: fixed delay
	Reset    time.Duration // running this long, with a completed checkpoint, forgets earlier failures
}

// Result is what a run did.
type Result struct {
	RestoredFrom checkpoint.ID
	Checkpoints  int // completed by this execution, committed or not
	Restarts     int
	// Records are those of the newest completed checkpoint that this execution
	// knows, by source and sink name, over the life of the job: committed when the
	// job has succeeded, else perhaps only by the next start. nil: it ended before
	// it knew of any.
	Records map[string]int64
	Elapsed time.Duration
}

// Event is something a run tells.
type Event interface{ event() }

type (
	// Started is told when the subtasks of an attempt begin to restore and to
	// open. Restored is 0 when they start empty.
	Started struct {
		Restored checkpoint.ID
		Final    bool // Restored is the job's last: there is nothing left to run
		Epoch    checkpoint.Epoch
	}
	// Running is told when all subtasks of an attempt have restored and are open:
	// it goes on from Restored, and can take checkpoints.
	Running struct {
		Restored checkpoint.ID
		Epoch    checkpoint.Epoch
	}
	// Fresh is told for each sink when a job is started fresh: what becomes of
	// what it has committed before.
	Fresh struct{ Sink, Output string }
	// Checkpointed is told for each completed checkpoint.
	Checkpointed struct{ Stats checkpoint.Stats }
	// CheckpointFailed is told for each failed checkpoint.
	CheckpointFailed struct{ Stats checkpoint.Stats }
	// Restarting is told before a restart.
	Restarting struct {
		Restart int
		Delay   time.Duration
		Cause   error
	}
	// Health is told when there has been no checkpoint for a multiple of the
	// interval, and when it is well again. Age counts from the last one, or from
	// when the attempt was running if that was later.
	Health struct {
		Degraded bool
		Age      time.Duration
	}
)

func (Started) event()          {}
func (Running) event()          {}
func (Fresh) event()            {}
func (Checkpointed) event()     {}
func (CheckpointFailed) event() {}
func (Restarting) event()       {}
func (Health) event()           {}
