package task

import (
	"context"
	"log/slog"
	"time"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/transport"
	"github.com/staunchdev/staunch/storage"
)

// Config is one subtask of one attempt, wired up.
type Config struct {
	ID       checkpoint.SubtaskID
	Epoch    checkpoint.Epoch
	Mode     checkpoint.Mode
	Restored checkpoint.ID      // the checkpoint that is restored; 0: none
	Context  context.Context    // of the attempt; nil: context.Background
	Instance connector.Instance // Operator is set for each operator by New
	HashSeed uint64
	Range    checkpoint.HashRange
	Store    storage.Store

	Ops     []Op             // in chain order, head first
	Entries []operator.Entry // of the head, by input port
	Inputs  []Input          // none: the head is an operator.Source
	Edges   []operator.EdgeWriter

	Lead    Lead
	Exec    Executor
	Packers Packers
	Now     func() int64                                  // Unix nanoseconds; called on the executor too
	Counter func(operator, name string) *operator.Counter // nil: not collected
	Log     *slog.Logger
	// Observe, if set, is told of each event before Barriers handles it: the
	// state it meets and its name.
	Observe func(state, event string)
	Options Options
}

// Op is one operator of the chain.
type Op struct {
	Name    string
	Op      operator.Operator
	Restore *operator.Restore // nil: it starts empty
}

// Input is the receiving end of a channel.
type Input struct {
	Ring *transport.Ring
	From checkpoint.SubtaskID
	Port int // input port of the head
}

// Options are what may be left alone.
type Options struct {
	// AlignmentLimit is how many records may be held back in blocked channels
	// before the checkpoint is declined; 0: the channels' capacity bounds them.
	AlignmentLimit int64
	// Inline writes snapshots on the subtask's goroutine.
	Inline bool
	// A slice has at most SliceRecords records (0: 1024) and takes about
	// SliceTime (0: 100 us).
	SliceRecords int
	SliceTime    time.Duration
	// BufferTimeout is how long a record may wait in a batch that does not fill,
	// while the subtask has other work (0: 10 ms).
	BufferTimeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.SliceRecords <= 0 {
		o.SliceRecords = 1024
	}
	if o.SliceTime <= 0 {
		o.SliceTime = 100 * time.Microsecond
	}
	if o.BufferTimeout <= 0 {
		o.BufferTimeout = 10 * time.Millisecond
	}
	return o
}
