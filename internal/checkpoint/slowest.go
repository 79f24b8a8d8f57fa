package checkpoint

// Wait is the longest single wait of a checkpoint, and where it was.
type Wait struct {
	Phase   string
	Nanos   int64
	Subtask *SubtaskID // nil: the coordinator
	Channel *SubtaskID // of an alignment: whose barrier came last
}

// Slowest finds what a checkpoint waited for longest; false if nothing took
// time. The phases of different subtasks overlap, so it is not a share of the
// duration.
func (s *Stats) Slowest() (w Wait, ok bool) {
	take := func(phase string, nanos int64, t *SubtaskStats) {
		if nanos <= w.Nanos {
			return
		}
		w, ok = Wait{Phase: phase, Nanos: nanos}, true
		if t == nil {
			return
		}
		w.Subtask = &t.Subtask
		if i := t.LastChannel(); phase == "alignment" && i >= 0 {
			w.Channel = &t.Channels[i].From
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
	return w, ok
}

// LastChannel is the channel whose barrier arrived last; -1: there is none.
func (t *SubtaskStats) LastChannel() int {
	last := -1
	for i, c := range t.Channels {
		if c.Arrived != 0 && (last < 0 || c.Arrived > t.Channels[last].Arrived) {
			last = i
		}
	}
	return last
}
