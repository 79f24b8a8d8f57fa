package inspect

import (
	"context"
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/storage"
)

// Operator is what a checkpoint holds of one operator.
type Operator struct {
	Name            string          `json:"name"`
	Kind            string          `json:"kind"`
	Parallelism     int             `json:"parallelism"`
	Finished        []int           `json:"finished_subtasks,omitempty"`
	Records         int64           `json:"records,omitempty"` // of a source or sink, over the life of the job
	States          []State         `json:"states,omitempty"`
	Lists           []OperatorState `json:"operator_states,omitempty"`
	Splits          []Split         `json:"splits,omitempty"`
	EnumeratorBytes int64           `json:"enumerator_bytes,omitempty"`
	Committables    []Committable   `json:"committables,omitempty"`
}

// State is one keyed state.
type State struct {
	Name     string    `json:"name"`
	Kind     string    `json:"kind"`
	Entries  int64     `json:"entries"`
	Bytes    int64     `json:"bytes"`
	TTL      Millis    `json:"ttl_ms,omitempty"`
	Segments []Segment `json:"segments,omitempty"`
}

// Segment is one interval of hashes of a state. Entries is exact if there are
// no deltas.
type Segment struct {
	Subtask int    `json:"subtask"` // which owns the first hash
	Range   string `json:"hash_range"`
	Entries int64  `json:"base_entries"`
	Deltas  int    `json:"deltas"`
	Stored  int64  `json:"stored_bytes"`
}

// OperatorState is one operator state.
type OperatorState struct {
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Entries int64  `json:"entries"`
	Bytes   int64  `json:"bytes"`
}

// Split is where a source goes on reading a split. Its unit is the source's:
// bytes for files.
type Split struct {
	ID       string `json:"id"`
	Position int64  `json:"position"`
	End      *int64 `json:"end,omitempty"`
	Weight   int64  `json:"weight,omitempty"`
	Done     bool   `json:"done,omitempty"`
}

// Committable is output that a sink had prepared and not yet committed.
type Committable struct {
	ID       string        `json:"id"`
	Prepared checkpoint.ID `json:"prepared_for"`
	Subtask  int           `json:"subtask"`
	Bytes    int           `json:"bytes"`
}

func readOperator(ctx context.Context, store storage.Store, m *checkpoint.Manifest, o *checkpoint.OperatorManifest) (Operator, error) {
	op := Operator{Name: o.Name, Kind: o.Kind, Parallelism: o.Parallelism, Finished: o.Finished, Records: o.Records}
	for i := range o.States {
		op.States = append(op.States, stateOf(&o.States[i], o.Parallelism))
	}
	for _, l := range o.Lists {
		op.Lists = append(op.Lists, OperatorState{l.Name, listModeText(l.Mode), l.Run.Entries, l.Run.Bytes})
	}
	if o.Enumerator != nil {
		op.EnumeratorBytes = o.Enumerator.Bytes
	}
	splits, err := readTable[checkpoint.Split](ctx, store, m, o.Splits)
	if err != nil {
		return op, fmt.Errorf("splits: %w", err)
	}
	for _, s := range splits {
		op.Splits = append(op.Splits, Split{s.ID, s.N, s.End, s.Weight, s.Done})
	}
	committables, err := readTable[checkpoint.Committable](ctx, store, m, o.Committables)
	if err != nil {
		return op, fmt.Errorf("committables: %w", err)
	}
	for _, c := range committables {
		op.Committables = append(op.Committables, Committable{c.ID, c.Prepared, c.Subtask, len(c.Data)})
	}
	return op, nil
}

func stateOf(s *checkpoint.StateManifest, parallelism int) State {
	out := State{Name: s.Name, Kind: s.Kind.String(), Entries: s.Entries, Bytes: s.Bytes, TTL: Millis(s.TTL)}
	for _, seg := range s.Segments {
		stored := seg.Base.Length
		for _, d := range seg.Deltas {
			stored += d.Length
		}
		out.Segments = append(out.Segments, Segment{
			Subtask: keyhash.Owner(seg.Range.Lo, max(parallelism, 1)), Range: rangeText(seg.Range),
			Entries: seg.Base.Entries, Deltas: len(seg.Deltas), Stored: stored,
		})
	}
	return out
}

func listModeText(m checkpoint.ListMode) string {
	switch m {
	case checkpoint.SplitList:
		return "split"
	case checkpoint.UnionList:
		return "union"
	case checkpoint.Broadcast:
		return "broadcast"
	}
	return fmt.Sprintf("mode %d", m)
}
