package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// Listing is what a store holds.
type Listing struct {
	Store       string   `json:"store"`
	Job         string   `json:"job"`
	Generation  uint64   `json:"generation"` // the newest: of the last start
	Owner       string   `json:"owner,omitempty"`
	Lineage     uint64   `json:"lineage"`          // the branch that is continued
	Resume      *Resume  `json:"resume,omitempty"` // absent: a start begins empty
	Checkpoints []Listed `json:"checkpoints"`      // the newest is the last
}

// Resume is the checkpoint from which a start goes on by itself. Age is how
// much input it would read again, in time.
type Resume struct {
	ID  checkpoint.ID `json:"id"`
	Age Millis        `json:"age_ms"` // since it was triggered; of no meaning if its manifest cannot be read
}

// Status is how a checkpoint ended.
type Status string

const (
	Completed  Status = "completed"
	Failed     Status = "failed"     // given up; it holds nothing, and is kept for its reason
	Unreadable Status = "unreadable" // completed, but its manifest is damaged or missing
)

// Output is what became of the output that a checkpoint names.
type Output string

const (
	Committed Output = "committed" // every sink has committed it
	Pending   Output = "pending"   // some sink has not confirmed; a start commits it first
	NoOutput  Output = "none"      // it names none
)

// Listed is one checkpoint of a Listing.
type Listed struct {
	ID         checkpoint.ID `json:"id"`
	Status     Status        `json:"status"`
	Kind       string        `json:"kind"`
	Lineage    uint64        `json:"lineage"`
	Generation uint64        `json:"generation"`
	Attempt    uint64        `json:"attempt,omitempty"` // absent: not known, of a failed one
	Triggered  time.Time     `json:"triggered_at"`
	// Duration is up to the last ack, or to the end of one that failed. What
	// follows the last ack is not known to the manifest, which is written then.
	Duration   Millis   `json:"duration_ms"`
	StateBytes int64    `json:"state_bytes"`
	Output     Output   `json:"output,omitempty"`
	Pins       []string `json:"pinned_as,omitempty"`
	Failure    *Failure `json:"failure,omitempty"`
	Fault      *Fault   `json:"fault,omitempty"`
}

// Failure says why a checkpoint failed, in which phase, and who had not
// answered.
type Failure struct {
	Reason  string   `json:"reason"`
	Detail  string   `json:"detail,omitempty"`
	Subtask string   `json:"subtask,omitempty"` // who declined
	Phase   string   `json:"phase"`
	Waiting []string `json:"waiting_for,omitempty"`
}

// List returns what the store holds. now is only for ages.
func List(ctx context.Context, store storage.Store, now time.Time) (*Listing, error) {
	h, err := readHistory(ctx, store)
	if err != nil {
		return nil, err
	}
	l := &Listing{
		Store: store.String(), Job: h.view.Job, Generation: h.view.Generation, Owner: h.view.Owner, Lineage: h.view.Lineage,
		Checkpoints: []Listed{},
	}
	latest, any := h.view.Latest()
	if any {
		l.Resume = &Resume{ID: latest.ID}
	}
	for _, r := range h.retained {
		c, failed, err := h.listed(ctx, r)
		if err != nil {
			return nil, err
		}
		l.Checkpoints = append(append(l.Checkpoints, failed...), c)
		if any && r.ID == latest.ID && r.manifest != nil {
			l.Resume.Age = Millis(now.Sub(c.Triggered))
		}
	}
	// A failed id may have been used again by a later generation.
	slices.SortStableFunc(l.Checkpoints, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), a.Triggered.Compare(b.Triggered))
	})
	return l, nil
}

// listed is a checkpoint, and the failed ones that its manifest keeps.
func (h *history) listed(ctx context.Context, r retained) (Listed, []Listed, error) {
	c := Listed{
		ID: r.ID, Status: Completed, Kind: kindText(r.Purpose), Lineage: r.Lineage,
		Generation: r.Epoch.Generation, Attempt: r.Epoch.Attempt, Output: r.output(), Pins: h.pins(r.ID),
	}
	unreadable := func(err error) (Listed, []Listed, error) {
		f := faultOf(r.Manifest.Name, err)
		c.Status, c.Fault = Unreadable, &f
		return c, nil, nil
	}
	if r.err != nil {
		return unreadable(r.err)
	}
	c.Triggered, c.Duration = at(r.manifest.Triggered), Millis(r.manifest.Finished-r.manifest.Triggered)
	c.StateBytes, _ = stateSize(r.manifest)
	_, stats, err := readStats(ctx, h.store, r.manifest)
	switch {
	case err == nil:
	case kindOf(err) == Unreachable:
		return c, nil, err
	case kindOf(err) == Missing:
		// If it was disposed of meanwhile, its failed ones went with it.
		gone, err2 := disposedMeanwhile(ctx, h.store, []checkpoint.ID{r.ID})
		if err2 != nil || gone {
			return c, nil, err2
		}
		return unreadable(err)
	default:
		return unreadable(err)
	}
	var failed []Listed
	for _, s := range stats {
		failed = append(failed, listedFailure(r, s))
	}
	return c, failed, nil
}

// listedFailure is a failed checkpoint as a manifest of the same process keeps
// it.
func listedFailure(keeper retained, s checkpoint.Stats) Listed {
	return Listed{
		ID: s.ID, Status: Failed, Kind: kindText(s.Kind), Lineage: keeper.Lineage, Generation: keeper.Epoch.Generation,
		Triggered: at(s.Triggered), Duration: Millis(s.Failure.At - s.Triggered), Failure: failureOf(s),
	}
}

func failureOf(s checkpoint.Stats) *Failure {
	f := s.Failure
	if f == nil {
		return nil
	}
	out := &Failure{Reason: f.Reason.String(), Detail: f.Detail, Phase: f.Phase.String(), Waiting: subtaskTexts(f.Waiting)}
	if f.Subtask != nil {
		out.Subtask = f.Subtask.String()
	}
	return out
}

func (r retained) output() Output {
	switch {
	case !r.Committables:
		return NoOutput
	case r.Committed:
		return Committed
	}
	return Pending
}

// stateSize sums up the keyed state of a manifest.
func stateSize(m *checkpoint.Manifest) (bytes, entries int64) {
	for _, op := range m.Operators {
		for _, s := range op.States {
			bytes += s.Bytes
			entries += s.Entries
		}
	}
	return bytes, entries
}
