package cluster

import (
	"context"
	"log/slog"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// keptFailures bounds how many failed checkpoints wait to be kept with the next
// one that completes.
const keptFailures = 16

// report tells of a checkpoint that completed, was committed, or failed: one
// line of log, one event, and for failures an entry that the next manifest
// keeps.
func (x *Execution) report(a *attempt, s checkpoint.Stats) {
	switch {
	case s.Failure != nil:
		delete(a.enumAt, s.ID)
		if s.Failure.Phase > checkpoint.PhaseEnumerators && s.Failure.Reason != checkpoint.Cancelled {
			x.litter(a)
		}
		x.metrics.add("checkpoints.failed", 1)
		x.failed = append(x.failed, s)
		if n := len(x.failed) - keptFailures; n > 0 {
			x.failed = x.failed[n:]
		}
		level := slog.LevelWarn
		if !s.Failure.Reason.Counts() {
			level = slog.LevelInfo
		}
		x.sayGathered(level, "checkpoint failed", s.Failure.String(), "id", s.ID, "reason", s.Failure.String(),
			"phase", s.Failure.Phase.String(), "after", time.Duration(s.Failure.At-s.Triggered))
		x.emit(CheckpointFailed{s})
		x.wishes.ended(s)
	case s.ID <= a.reported:
		x.log.Debug("checkpoint committed", "id", s.ID, "commit", time.Duration(s.Committed-s.Appended))
	default:
		delete(a.enumAt, s.ID)
		a.completed, a.reported = true, s.ID
		if a.littered && !a.ending {
			x.collectGarbage(a)
		}
		x.health.completed(x, s)
		x.metrics.checkpointed(s)
		if done, ok := a.inputDone(s); ok {
			x.metrics.set("input.done_permille", done)
		}
		var subtask, channel string
		w, _ := s.Slowest()
		if w.Subtask != nil {
			subtask = w.Subtask.String()
		}
		if w.Channel != nil {
			channel = w.Channel.String()
		}
		x.log.Info("checkpoint", "id", s.ID, "duration", time.Duration(s.Appended-s.Triggered), "bytes", s.Bytes,
			"slowest_phase", w.Phase, "phase_duration", time.Duration(w.Nanos), "subtask", subtask, "channel", channel)
		x.emit(Checkpointed{s})
		x.wishes.ended(s)
	}
}

// litter notes that a failed checkpoint may have left objects behind. They are
// collected soon, not only when the next one completes: where all of them fail,
// they would fill the store.
func (x *Execution) litter(a *attempt) {
	a.littered = true
	x.env.After(litterPause, func() {
		x.in.post(func() {
			if x.att == a && a.littered && !a.ending {
				x.collectGarbage(a)
			}
		})
	})
}

// litterPause gives subtasks time to stop writing for a checkpoint that was
// given up, and bounds how often the store is listed.
const litterPause = 5 * time.Second

// healthState is for how long there was no completed checkpoint though the job
// was running. It does not count the age that a restored checkpoint had before,
// which says nothing of this run (the metric checkpoints.age_ns does), nor the
// time in which the first attempt waits for what it needs to begin.
type healthState struct {
	since    int64 // when the newest checkpoint was triggered or, if later, the attempt was running; 0: none was yet
	none     bool  // no checkpoint has completed since the attempt was running
	steps    int   // of healthAfter intervals, already told
	said     int64 // when it was logged last
	degraded bool
}

// healthAfter is after how many intervals without a completed checkpoint the
// job counts as degraded.
const healthAfter = 5

func (h *healthState) running(now int64) { h.since, h.none, h.steps = now, true, 0 }

func (h *healthState) completed(x *Execution, s checkpoint.Stats) {
	h.since, h.none, h.steps = s.Triggered, false, 0
	if h.degraded {
		h.degraded = false
		x.log.Info("checkpoints complete again", "id", s.ID)
		x.emit(Health{})
	}
}

// watchHealth looks at the age of the last checkpoint by a timer of its own: a
// job whose checkpoints are no longer even triggered must be noticed too.
func (x *Execution) watchHealth() {
	interval := x.opt.Checkpoint.Interval
	if interval <= 0 {
		return
	}
	x.env.After(max(interval/2, 100*time.Millisecond), func() {
		x.in.post(func() {
			if !x.finished {
				x.checkHealth(interval)
				x.watchHealth()
			}
		})
	})
}

// checkHealth tells, once a step, that the last checkpoint is growing old; from
// the fourth step on the log has it once a minute at most.
func (x *Execution) checkHealth(interval time.Duration) {
	h := &x.health
	if h.since == 0 {
		return
	}
	age := time.Duration(x.env.Now() - h.since)
	step := int(age / (healthAfter * max(interval, 100*time.Millisecond)))
	if step <= h.steps {
		return
	}
	h.steps, h.degraded = step, true
	level := slog.LevelWarn
	if now := x.env.Now(); step <= 3 || time.Duration(now-h.said) >= repeatsPause {
		h.said = now
	} else {
		level = slog.LevelDebug
	}
	text := "degraded: the last checkpoint is old"
	if h.none {
		text = "degraded: no checkpoint since the start"
	}
	x.log.Log(context.Background(), level, text, "age", age.Round(time.Millisecond), "interval", interval)
	x.emit(Health{Degraded: true, Age: age})
}

// inputDone is how much of the input lies before a checkpoint, in thousandths,
// where every split says how large it is in the unit of its position.
func (a *attempt) inputDone(s checkpoint.Stats) (permille int64, ok bool) {
	var read, size int64
	for _, h := range a.hosts {
		if h == nil {
			continue
		}
		for _, w := range h.sizes() {
			if w <= 0 {
				return 0, false
			}
			size += w
		}
	}
	if size == 0 {
		return 0, false
	}
	for _, t := range s.Subtasks {
		for _, sp := range t.Splits {
			read += sp.N
		}
	}
	return min(read*1000/size, 1000), true
}
