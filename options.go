package staunch

import (
	"cmp"
	"log/slog"
	"runtime"
	"time"
)

// Options configure a run. A zero field is taken from Job.Defaults, or else
// has the default told here.
type Options struct {
	Storage       string        // URL of checkpoints: a directory as path or file:///path, mem: (tests), or of a scheme registered with package storage
	Mode          Guarantee     // 0: ExactlyOnce
	Require       Guarantee     // refuse to start if the job cannot deliver it; 0: start anyway
	Parallelism   int           // 0: GOMAXPROCS less one, at least 1
	Restart       RestartPolicy // zero: exponential backoff, 1 s to 1 min, for ever
	Checkpoint    CheckpointOptions
	State         StateOptions
	From          string   // start from this checkpoint id, not the latest
	Fresh         bool     // start empty though there are checkpoints
	Takeover      bool     // start though another owner of the storage seems to live; it is fenced off
	AcceptRepeats bool     // go back to From though a sink has committed above it
	NoClaim       bool     // not in this version
	DropState     []string // operator or operator/state that nothing claims, to let go of at this start; what the checkpoint does not hold is refused
	Listen        string   // not in this version
	Control       string   // not in this version
	Log           *slog.Logger
	OnEvent       func(Event) // called on the coordinator's goroutine; must not block
}

// CheckpointOptions say when and how checkpoints are taken.
type CheckpointOptions struct {
	Interval         time.Duration // 0: 1 s; negative: only on demand and at the end
	Timeout          time.Duration // 0: 10 min
	MinPause         time.Duration // between the end of one and the start of the next
	FailAfter        int           // consecutive failures that fail the attempt; 0 or negative: never
	Retain           int           // 0: 3
	Alignment        Alignment     // 0: AlignAuto
	AlignmentTimeout time.Duration // 0: 1 s
	Inline           bool          // write the snapshot on the subtask's goroutine
}

// StateOptions choose the state backend.
type StateOptions struct {
	Backend    Backend // 0: Heap
	Dir        string  // for Pebble: local directory
	CacheBytes int64   // for Pebble: shared by the process
	Eager      bool    // load all state before the first record
}

// Alignment is how ExactlyOnce waits for barriers.
type Alignment uint8

const (
	_         Alignment = iota
	AlignAuto           // aligned, unaligned after AlignmentTimeout; in this version it acts as Aligned
	Aligned             // block channels until the last barrier
	Unaligned           // overtake, and keep in-flight records in the checkpoint; not in this version
)

func (a Alignment) String() string {
	switch a {
	case AlignAuto:
		return "auto"
	case Aligned:
		return "aligned"
	case Unaligned:
		return "unaligned"
	}
	return "unset"
}

// Backend is where state lives while the job runs. Checkpoints are the same
// for all.
type Backend uint8

const (
	_      Backend = iota
	Heap           // in memory
	Pebble         // on local disk, with a cache; not in this version
)

// RestartPolicy says what follows a failure. It is taken whole: a policy with
// any field set replaces that of Job.Defaults.
type RestartPolicy struct {
	Attempts int           // 0: for ever; negative: do not restart
	Delay    time.Duration // before the first restart; 0: 1 s
	MaxDelay time.Duration // 0: 1 min
	Factor   float64       // 0: 2; 1: fixed delay
	Reset    time.Duration // running this long forgets earlier failures; 0: 10 min
}

// FixedDelay restarts up to attempts times, each after delay.
func FixedDelay(attempts int, delay time.Duration) RestartPolicy {
	return RestartPolicy{Attempts: attempts, Delay: delay, Factor: 1}
}

// Backoff restarts for ever, after first, 2*first and so on up to max.
func Backoff(first, max time.Duration) RestartPolicy {
	return RestartPolicy{Delay: first, MaxDelay: max}
}

// NoRestart fails the run at the first failure.
func NoRestart() RestartPolicy { return RestartPolicy{Attempts: -1} }

// over fills the zero fields of o from d, field by field.
func (o Options) over(d Options) Options {
	o.Storage = cmp.Or(o.Storage, d.Storage)
	o.Mode = cmp.Or(o.Mode, d.Mode)
	o.Require = cmp.Or(o.Require, d.Require)
	o.Parallelism = cmp.Or(o.Parallelism, d.Parallelism)
	o.Restart = cmp.Or(o.Restart, d.Restart)
	c, e := &o.Checkpoint, d.Checkpoint
	c.Interval = cmp.Or(c.Interval, e.Interval)
	c.Timeout = cmp.Or(c.Timeout, e.Timeout)
	c.MinPause = cmp.Or(c.MinPause, e.MinPause)
	c.FailAfter = cmp.Or(c.FailAfter, e.FailAfter)
	c.Retain = cmp.Or(c.Retain, e.Retain)
	c.Alignment = cmp.Or(c.Alignment, e.Alignment)
	c.AlignmentTimeout = cmp.Or(c.AlignmentTimeout, e.AlignmentTimeout)
	c.Inline = c.Inline || e.Inline
	s, t := &o.State, d.State
	s.Backend = cmp.Or(s.Backend, t.Backend)
	s.Dir = cmp.Or(s.Dir, t.Dir)
	s.CacheBytes = cmp.Or(s.CacheBytes, t.CacheBytes)
	s.Eager = s.Eager || t.Eager
	o.From = cmp.Or(o.From, d.From)
	o.Fresh = o.Fresh || d.Fresh
	o.Takeover = o.Takeover || d.Takeover
	o.AcceptRepeats = o.AcceptRepeats || d.AcceptRepeats
	o.NoClaim = o.NoClaim || d.NoClaim
	if o.DropState == nil {
		o.DropState = d.DropState
	}
	o.Listen = cmp.Or(o.Listen, d.Listen)
	o.Control = cmp.Or(o.Control, d.Control)
	o.Log = cmp.Or(o.Log, d.Log)
	if o.OnEvent == nil {
		o.OnEvent = d.OnEvent
	}
	return o
}

// engineDefaults is what holds where neither the run nor the job says anything.
func engineDefaults() Options {
	return Options{
		Mode:        ExactlyOnce,
		Parallelism: max(1, runtime.GOMAXPROCS(0)-1),
		Restart:     RestartPolicy{Delay: time.Second},
		Checkpoint: CheckpointOptions{
			Interval: time.Second, Timeout: 10 * time.Minute, Retain: 3,
			Alignment: AlignAuto, AlignmentTimeout: time.Second,
		},
		State: StateOptions{Backend: Heap},
		Log:   slog.Default(),
	}
}

// complete resolves o over the job's defaults and those of the engine.
func (j *Job) complete(o Options) Options {
	o = o.over(j.defaults).over(engineDefaults())
	r := &o.Restart
	r.Delay = cmp.Or(r.Delay, time.Second)
	r.MaxDelay = max(cmp.Or(r.MaxDelay, time.Minute), r.Delay)
	r.Factor = cmp.Or(r.Factor, 2)
	r.Reset = cmp.Or(r.Reset, 10*time.Minute)
	return o
}
