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
	w, ok := s.Slowest()
	if !ok {
		return nil
	}
	out := &Wait{Phase: w.Phase, Took: Millis(w.Nanos)}
	if w.Subtask != nil {
		out.Subtask = w.Subtask.String()
	}
	if w.Channel != nil {
		out.Channel = w.Channel.String()
	}
	return out
}
