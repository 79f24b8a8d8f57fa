package cluster

import (
	"maps"
	"sync"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/task"
)

// metrics are the numbers of an execution that anyone may read at any time.
type metrics struct {
	mu       sync.Mutex
	counters map[string][]*operator.Counter // "operator.name": one a subtask and attempt
	values   map[string]int64
	subtasks func() map[string]task.Counters
	since    int64 // when the newest checkpoint was triggered, or the job began
}

// counter makes a counter of one subtask.
func (m *metrics) counter(op, name string) *operator.Counter {
	c := &operator.Counter{}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counters == nil {
		m.counters = map[string][]*operator.Counter{}
	}
	m.counters[op+"."+name] = append(m.counters[op+"."+name], c)
	return c
}

// observe reads the counters of these subtasks until settle.
func (m *metrics) observe(ids []checkpoint.SubtaskID, tasks map[checkpoint.SubtaskID]*task.Task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subtasks = func() map[string]task.Counters {
		out := make(map[string]task.Counters, len(ids))
		for _, id := range ids {
			out[id.String()] = tasks[id].Counters()
		}
		return out
	}
}

// settle folds the counters of subtasks that are gone into values.
func (m *metrics) settle() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, cs := range m.counters {
		for _, c := range cs {
			m.addLocked(name, c.Load())
		}
	}
	m.counters, m.subtasks = nil, nil
}

func (m *metrics) add(name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.addLocked(name, n)
}

func (m *metrics) addLocked(name string, n int64) {
	if m.values == nil {
		m.values = map[string]int64{}
	}
	m.values[name] += n
}

func (m *metrics) set(name string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string]int64{}
	}
	m.values[name] = n
}

func (m *metrics) checkpointed(s checkpoint.Stats) {
	m.add("checkpoints.completed", 1)
	m.set("checkpoints.last_id", int64(s.ID))
	m.set("checkpoints.last_bytes", s.Bytes)
	m.set("checkpoints.last_duration_ns", s.Appended-s.Triggered)
	m.mu.Lock()
	m.since = s.Triggered
	m.mu.Unlock()
}

func (m *metrics) restored(triggered int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since = triggered
}

// Metrics returns the numbers of the execution by name: "OPERATOR.records" and
// what user code counts, summed over subtasks and attempts of this process;
// "checkpoints.*"; "subtask.VERTEX/INDEX.*" of the running attempt. Names that
// end in _ns are nanoseconds.
func (x *Execution) Metrics() map[string]int64 {
	m := &x.metrics
	m.mu.Lock()
	out := maps.Clone(m.values)
	if out == nil {
		out = map[string]int64{}
	}
	for name, cs := range m.counters {
		for _, c := range cs {
			out[name] += c.Load()
		}
	}
	since, subtasks := m.since, m.subtasks
	m.mu.Unlock()
	if since != 0 {
		out["checkpoints.age_ns"] = x.env.Now() - since
	}
	if subtasks != nil {
		for id, c := range subtasks() {
			p := "subtask." + id + "."
			out[p+"idle_ns"], out[p+"backpressured_ns"], out[p+"preparing_ns"] = c.IdleNanos, c.BackpressuredNanos, c.PreparingNanos
			out[p+"refused_mails"] = c.Refused
			out[p+"stale_barriers"], out[p+"aborted_alignments"] = c.Barriers.StaleBarriers, c.Barriers.Aborted
		}
	}
	return out
}
