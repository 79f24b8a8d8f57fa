package checkpoint

import "testing"

func TestSlowestNamesPhaseSubtaskAndChannel(t *testing.T) {
	a, b := SubtaskID{"a", 0}, SubtaskID{"a", 1}
	sink := SubtaskID{"sink", 0}
	aligned := SubtaskStats{Subtask: sink, First: 110, Alignment: 50, Prepare: 20, Channels: []ChannelStats{
		{From: a, Arrived: 110}, {From: b, Arrived: 160},
	}}
	tests := []struct {
		name    string
		stats   Stats
		phase   string
		nanos   int64
		subtask string
		channel string
	}{
		{"alignment", Stats{Triggered: 100, Subtasks: []SubtaskStats{aligned}}, "alignment", 50, "sink/0", "a/1"},
		{"publish", Stats{Triggered: 100, LastAck: 200, Published: 300, Appended: 310, Subtasks: []SubtaskStats{aligned}}, "publish", 100, "", ""},
		{"enumerators", Stats{Triggered: 100, Enumerated: 170, Subtasks: []SubtaskStats{aligned}}, "enumerators", 70, "", ""},
		{"nothing", Stats{Triggered: 100}, "", 0, "", ""},
	}
	for _, tt := range tests {
		w, ok := tt.stats.Slowest()
		if ok != (tt.phase != "") || w.Phase != tt.phase || w.Nanos != tt.nanos {
			t.Errorf("%s: got %+v, %v", tt.name, w, ok)
			continue
		}
		if name(w.Subtask) != tt.subtask || name(w.Channel) != tt.channel {
			t.Errorf("%s: at %s, channel %s", tt.name, name(w.Subtask), name(w.Channel))
		}
	}
}

func name(s *SubtaskID) string {
	if s == nil {
		return ""
	}
	return s.String()
}
