package inspect

import "github.com/staunchdev/staunch/internal/checkpoint"

// Phase is a stage of the coordinator's work: when it was over.
type Phase struct {
	Name  string `json:"name"`
	After Millis `json:"after_trigger_ms"`
	Took  Millis `json:"duration_ms"`
}

// Subtask is what one subtask did for a checkpoint. What is zero took no time
// or did not happen: a source has no alignment, most sinks no prepare.
type Subtask struct {
	Name      string    `json:"subtask"`
	Start     Millis    `json:"start_ms"`     // from the trigger until its first barrier
	Alignment Millis    `json:"alignment_ms"` // from its first barrier until its last
	Prepare   Millis    `json:"prepare_ms"`
	Sync      Millis    `json:"sync_ms"`
	Async     Millis    `json:"async_ms"`
	Acked     Millis    `json:"acked_after_trigger_ms"`
	Bytes     int64     `json:"bytes"`
	Channels  []Channel `json:"channels,omitempty"`
}

// Channel is when the barrier of one input arrived.
type Channel struct {
	From   string `json:"from"`
	Ended  bool   `json:"ended,omitempty"` // the input had ended: no barrier came
	After  Millis `json:"after_first_ms"`  // after the first barrier of the subtask
	Queued int64  `json:"queued_records"`  // ahead of this barrier, when the first arrived
	Last   bool   `json:"last,omitempty"`  // the subtask waited for this one
}

// timings fills in how the checkpoint was taken.
func (d *Detail) timings(s checkpoint.Stats) {
	d.Phases = phases(s)
	for i := range s.Subtasks {
		d.Subtasks = append(d.Subtasks, subtask(s, &s.Subtasks[i]))
	}
	d.Slowest = slowest(s)
}

// phases are the stages that were reached. A manifest is written before it is
// published and appended, so those two are known only of statistics that were
// taken later.
func phases(s checkpoint.Stats) []Phase {
	out := []Phase{}
	before := s.Triggered
	for _, p := range []struct {
		name string
		end  int64
	}{{"enumerators", s.Enumerated}, {"acks", s.LastAck}, {"publish", s.Published}, {"append", s.Appended}, {"commit", s.Committed}} {
		if p.end != 0 {
			out = append(out, Phase{p.name, since(s, p.end), Millis(p.end - before)})
			before = p.end
		}
	}
	return out
}

func subtask(s checkpoint.Stats, t *checkpoint.SubtaskStats) Subtask {
	out := Subtask{
		Name: t.Subtask.String(), Start: since(s, t.First), Alignment: Millis(t.Alignment), Prepare: Millis(t.Prepare),
		Sync: Millis(t.Sync), Async: Millis(t.Async), Acked: since(s, t.Acked), Bytes: t.Bytes,
	}
	last := t.LastChannel()
	for i, c := range t.Channels {
		ch := Channel{From: c.From.String(), Ended: c.Arrived == 0, Queued: c.Queued, Last: i == last}
		if !ch.Ended {
			ch.After = Millis(c.Arrived - t.First)
		}
		out.Channels = append(out.Channels, ch)
	}
	return out
}
