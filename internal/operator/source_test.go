package operator

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

// script is a reader whose polls are written down beforehand.
type script struct {
	polls     []scripted
	added     []connector.Split
	committed []connector.CheckpointID
	splits    []connector.Split
	avail     chan struct{}
}

type scripted struct {
	split  string
	values []int
	bad    []connector.Bad
	next   int64
	err    error
}

func (s *script) Add(sp connector.Split) error { s.added = append(s.added, sp); return nil }

func (s *script) Poll(b *connector.Batch[int], _ int) (string, connector.Offset, error) {
	if len(s.polls) == 0 {
		return "", connector.Offset{}, connector.ErrEmpty
	}
	p := s.polls[0]
	s.polls = s.polls[1:]
	b.Values, b.Bad = append(b.Values, p.values...), append(b.Bad, p.bad...)
	return p.split, connector.Offset{N: p.next}, p.err
}

func (s *script) Available() <-chan struct{} { return s.avail }
func (s *script) Close() error               { return nil }

func (s *script) Committed(_ context.Context, id connector.CheckpointID, sp []connector.Split) error {
	s.committed, s.splits = append(s.committed, id), sp
	return nil
}

func newScript(t *testing.T, cfg SourceConfig[int], polls ...scripted) (*source[int], *script, *rig) {
	r := newRig(t, checkpoint.ExactlyOnce)
	sc := &script{polls: polls, avail: make(chan struct{})}
	cfg.Name = "in"
	cfg.Reader = func(context.Context, connector.Instance) (connector.Reader[int], error) { return sc, nil }
	s := NewSource(cfg).Op.(*source[int])
	if err := s.Open(r.rt); err != nil {
		t.Fatal(err)
	}
	return s, sc, r
}

func splitsOf(t *testing.T, s *source[int]) []checkpoint.Split {
	t.Helper()
	snap, err := s.Snapshot(checkpoint.Barrier{ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	ack, err := snap.Write(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return ack.Splits
}

func TestSourcePositionIsThatOfTheRecordsEmitted(t *testing.T) {
	out := &collect[int]{}
	s, sc, r := newScript(t, SourceConfig[int]{Outs: []any{out}},
		scripted{split: "b", values: []int{1, 2}, next: 12}, scripted{split: "a", values: []int{3}, next: 5, err: io.EOF})
	end := int64(99)
	// Splits may come before the reader is there; one is done from the start.
	s.AddSplits([]checkpoint.Split{{ID: "b", N: 10, End: &end}, {ID: "a", N: 4}, {ID: "c", N: 7, Done: true}})
	r.runAll()
	if len(sc.added) != 2 || sc.added[0].Next.N != 10 || sc.added[0].End.N != 99 {
		t.Fatalf("reader was given %+v", sc.added)
	}
	if res, err := s.Poll(1, 100); err != nil || res.Records != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	if sp := splitsOf(t, s); sp[0].N != 12 || sp[1].N != 4 || !sp[2].Done {
		t.Errorf("positions %+v", sp)
	}
	s.Poll(1, 100)
	if sp := splitsOf(t, s); sp[1].N != 5 || !sp[1].Done || sp[0].Done {
		t.Errorf("positions %+v", sp)
	}
	if diff := cmp.Diff([]int{1, 2, 3}, out.values); diff != "" {
		t.Error(diff)
	}
	if res, _ := s.Poll(1, 100); !res.Idle || res.Ended || s.Available() == nil {
		t.Errorf("nothing to read: %+v", res)
	}
	s.NoMoreSplits()
	if res, _ := s.Poll(1, 100); res.Ended {
		t.Error("ended while split b is not done")
	}
	sc.polls = []scripted{{split: "b", next: 12, err: io.EOF}}
	s.Poll(1, 100)
	if res, _ := s.Poll(1, 100); !res.Ended {
		t.Errorf("not ended: %+v", res)
	}
}

func TestBadRecordIsAnErrorOrADeadLetter(t *testing.T) {
	bad := scripted{split: "a", values: []int{1}, bad: []connector.Bad{{Err: errors.New("no JSON"), From: "a.jsonl, line 3, offset 120"}}, next: 9}
	out := &collect[int]{}
	s, _, r := newScript(t, SourceConfig[int]{Outs: []any{out}}, bad)
	s.AddSplits([]checkpoint.Split{{ID: "a"}})
	r.runAll()
	if _, err := s.Poll(1, 10); err == nil || err.Error() != `source "in": bad record at a.jsonl, line 3, offset 120: no JSON` {
		t.Errorf("error %v", err)
	}
	if len(out.values) != 0 || splitsOf(t, s)[0].N != 0 {
		t.Error("the split has moved over a bad record")
	}

	var letters []string
	s, _, r = newScript(t, SourceConfig[int]{Outs: []any{out}, Bad: func(b connector.Bad) error { letters = append(letters, b.From); return nil }}, bad)
	s.AddSplits([]checkpoint.Split{{ID: "a"}})
	r.runAll()
	if _, err := s.Poll(1, 10); err != nil || len(letters) != 1 || len(out.values) != 1 || splitsOf(t, s)[0].N != 9 {
		t.Errorf("error %v, letters %v, values %v", err, letters, out.values)
	}
}

func TestReaderThatConfusesItsSplitsIsRefused(t *testing.T) {
	for name, polls := range map[string][]scripted{
		"unknown": {{split: "x", values: []int{1}}},
		"done":    {{split: "a", next: 1, err: io.EOF}, {split: "a", values: []int{1}, next: 2}},
	} {
		s, _, r := newScript(t, SourceConfig[int]{}, polls...)
		s.AddSplits([]checkpoint.Split{{ID: "a"}, {ID: "b"}})
		r.runAll()
		var err error
		for range polls {
			_, err = s.Poll(1, 10)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSplitHandedOverTwiceIsRefused(t *testing.T) {
	s, _, r := newScript(t, SourceConfig[int]{})
	r.runAll()
	if err := s.AddSplits([]checkpoint.Split{{ID: "a"}, {ID: "a"}}); err == nil {
		t.Error("no error")
	}
}

func TestReaderLearnsOfCommittedPositions(t *testing.T) {
	s, sc, r := newScript(t, SourceConfig[int]{}, scripted{split: "a", values: []int{1}, next: 1}, scripted{split: "a", values: []int{2}, next: 2})
	s.AddSplits([]checkpoint.Split{{ID: "a"}})
	r.runAll()
	for id := checkpoint.ID(1); id <= 4; id++ {
		s.Poll(1, 10)
		s.Snapshot(checkpoint.Barrier{ID: id})
	}
	s.Abort(2)
	s.Committed(1)
	s.Committed(3)
	s.Committed(4) // of those that come while a call is under way the newest is told
	if len(r.work) != 1 {
		t.Fatalf("%d calls at once", len(r.work))
	}
	r.runAll()
	if diff := cmp.Diff([]connector.CheckpointID{1, 4}, sc.committed); diff != "" {
		t.Error(diff)
	}
	if sc.splits[0].Next.N != 2 {
		t.Errorf("splits %+v", sc.splits)
	}
}

func TestReservationCoversSeveralSplits(t *testing.T) {
	out := &collect[int]{}
	s, _, r := newScript(t, SourceConfig[int]{Outs: []any{out}},
		scripted{split: "a", values: []int{1}, next: 1}, scripted{split: "b", values: []int{2}, next: 8}, scripted{split: "a", values: []int{3}, next: 2})
	r.rt.Mode = checkpoint.AtMostOnce
	var asked [][]Reservation
	var done []func(error)
	r.rt.Reserve = func(rs []Reservation, d func(error)) { asked, done = append(asked, rs), append(done, d) }
	s.AddSplits([]checkpoint.Split{{ID: "a"}, {ID: "b"}})
	r.runAll()
	for range 5 {
		s.Poll(1, 10)
	}
	if len(out.values) != 0 || len(asked) != 1 {
		t.Fatalf("emitted %v, asked %v", out.values, asked)
	}
	done[0](nil)
	for range 5 {
		s.Poll(1, 10)
	}
	want := []Reservation{{Operator: "in", Split: "b", End: connector.Offset{N: 8}}, {Operator: "in", Split: "a", End: connector.Offset{N: 2}}}
	if len(asked) != 2 || !cmp.Equal(asked[1], want) || !cmp.Equal(out.values, []int{1}) {
		t.Fatalf("asked %+v, emitted %v", asked, out.values)
	}
	done[1](errors.New("fenced"))
	if len(r.failed) != 1 {
		t.Errorf("failed: %v", r.failed)
	}
}
