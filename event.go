package staunch

import (
	"time"

	"github.com/staunchdev/staunch/connector"
)

// CheckpointID numbers the checkpoints of a job from 1.
type CheckpointID = connector.CheckpointID

// Event is something a run tells: one of the Event types below.
type Event interface{ event() }

type (
	// Restored is told when a run goes on from a checkpoint.
	Restored struct {
		ID    CheckpointID
		Final bool // the job's last: its sources have ended, and nothing is left to run
	}
	// Fresh is told for each sink when a job is started fresh: what becomes of
	// what it committed before.
	Fresh struct{ Sink, Output string }
	// Checkpointed is told for each completed checkpoint.
	Checkpointed struct {
		ID       CheckpointID
		Duration time.Duration
		Bytes    int64
	}
	// CheckpointFailed is told for each failed checkpoint; Reason names whom it waited for.
	CheckpointFailed struct {
		ID     CheckpointID
		Reason error
	}
	// Restarting is told before a restart.
	Restarting struct {
		Attempt int
		Cause   error
	}
)

func (Restored) event()         {}
func (Fresh) event()            {}
func (Checkpointed) event()     {}
func (CheckpointFailed) event() {}
func (Restarting) event()       {}
