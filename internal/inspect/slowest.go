package inspect

import "github.com/staunchdev/staunch/internal/checkpoint"

// Wait is the longest single wait of a checkpoint, and where it was. The phases
// of different subtasks overlap, so it is not a share of the duration.
type Wait struct {
	Phase   string `json:"phase"`
	Took    Millis `json:"duration_ms"`
	Subtask string `json:"subtask,omitempty"` // absent: the coordinator
	Channel string `json:"channel,omitempty"` // whose barrier came last, of an alignment
}

// slowest finds the longest wait; nil if nothing took time.
func slowest(s checkpoint.Stats) *Wait {
	var w *Wait
	take := func(phase string, took int64, t *checkpoint.SubtaskStats) {
		if took <= 0 || w != nil && Millis(took) <= w.Took {
			return
		}
		w = &Wait{Phase: phase, Took: Millis(took)}
		if t == nil {
			return
		}
		w.Subtask = t.Subtask.String()
		if i := lastChannel(t); phase == "alignment" && i >= 0 {
			w.Channel = t.Channels[i].From.String()
		}
	}
	if s.Enumerated != 0 {
		take("enumerators", s.Enumerated-s.Triggered, nil)
	}
	for i := range s.Subtasks {
		t := &s.Subtasks[i]
		if t.First != 0 {
			take("start", t.First-s.Triggered, t)
		}
		take("alignment", t.Alignment, t)
		take("prepare", t.Prepare, t)
		take("sync", t.Sync, t)
		take("async", t.Async, t)
	}
	if s.Published != 0 {
		take("publish", s.Published-s.LastAck, nil)
	}
	if s.Appended != 0 {
		take("append", s.Appended-s.Published, nil)
	}
	return w
}
