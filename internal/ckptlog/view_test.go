package ckptlog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage/memstore"
)

// history is a log in the making: the entries that check admits.
type history struct {
	t *testing.T
	v View
}

func begin(t *testing.T) *history {
	h := &history{t: t}
	h.v.fold(Entry{Record: genesis})
	h.add(Takeover{Owner: "a"})
	return h
}

// add folds r in the next slot, and returns that.
func (h *history) add(r Record) uint64 {
	h.t.Helper()
	slot := h.v.Tail + 1
	if err := h.v.check(slot, r); err != nil {
		h.t.Fatalf("%+v: %v", r, err)
	}
	h.v.fold(Entry{Slot: slot, Record: r})
	return slot
}

// refused wants r not to be admitted, for a reason that contains why.
func (h *history) refused(r Record, why string) {
	h.t.Helper()
	if err := h.v.check(h.v.Tail+1, r); err == nil || !strings.Contains(err.Error(), why) {
		h.t.Errorf("%+v: %v, want a refusal: %s", r, err, why)
	}
}

func (h *history) ckpt(id checkpoint.ID, committables bool) {
	h.t.Helper()
	h.add(h.record(id, committables))
}

func (h *history) record(id checkpoint.ID, committables bool) Checkpoint {
	return Checkpoint{ID: id, Lineage: h.v.Lineage, Parent: latestID(h.v), Epoch: checkpoint.Epoch{Generation: h.v.Generation, Attempt: 1}, Committables: committables}
}

func (h *history) wantLatest(id checkpoint.ID) {
	h.t.Helper()
	if got := latestID(h.v); got != id {
		h.t.Errorf("latest is %d, want %d", got, id)
	}
}

func ids(cs []Retained) (ids []checkpoint.ID) {
	for _, c := range cs {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestLatestFollowsTheLineage(t *testing.T) {
	h := begin(t)
	h.wantLatest(0)
	h.ckpt(1, false)
	h.ckpt(2, false)
	h.ckpt(3, false)
	h.wantLatest(3)
	fork := h.add(Restore{From: 2, Lineage: 0})
	h.wantLatest(2)
	h.add(Takeover{Owner: "b"})
	h.wantLatest(2)
	h.ckpt(4, false)
	h.wantLatest(4)
	if h.v.Lineage != fork {
		t.Errorf("lineage %d, want %d", h.v.Lineage, fork)
	}
	if got := ids(h.v.Retained()); !slices.Equal(got, []checkpoint.ID{1, 2, 3, 4}) {
		t.Errorf("retained %v", got)
	}
	h.add(Restore{}) // fresh
	h.wantLatest(0)
	if h.v.NextID() != 5 {
		t.Errorf("next id %d, want 5: ids of the old lineages are not used again", h.v.NextID())
	}
}

// TestLowerIDIsNeverAppended is rule S2-6 of the protocol: two were pending, and
// the higher one came in first.
func TestLowerIDIsNeverAppended(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	seven := ckpt(l, 7)
	mustAppend(t, l, ckpt(l, 8))
	if err := l.Append(t.Context(), seven); !errors.Is(err, ErrRefused) {
		t.Errorf("append of 7 after 8: %v, want ErrRefused", err)
	}
	mustAppend(t, l, ckpt(l, 9))
	if v, _ := Read(t.Context(), s); latestID(v) != 9 || v.Tail != 3 {
		t.Errorf("log: %+v", v)
	}
}

func TestStaleRecordsAreRefused(t *testing.T) {
	h := begin(t)
	h.ckpt(1, false)
	old := h.record(2, false)
	h.add(Takeover{Owner: "b"})
	h.refused(old, "generation 1")
	h.add(Restore{From: 1})
	h.ckpt(2, false)
	other := h.record(3, false)
	other.Lineage = 0
	h.refused(other, "lineage 0")
	h.refused(genesis, "slot 0")
	h.refused(Restore{From: 9}, "not in the log")
	h.refused(Restore{From: 2, Lineage: 0}, "lineage 0")
	h.refused(Pin{"x", 9}, "not in the log")
	h.refused(Committed{ID: 9}, "never logged")
	h.refused(Resolve{}, "decision 0")
}

func TestWhatMayBeDisposed(t *testing.T) {
	h := begin(t)
	for id := range checkpoint.ID(6) {
		h.ckpt(id+1, id+1 == 2 || id+1 == 5)
	}
	h.add(Pin{"keep", 3})
	want := func(retain int, ids ...checkpoint.ID) {
		t.Helper()
		if got := h.v.Disposable(retain); !slices.Equal(got, ids) {
			t.Errorf("retaining %d: %v may be disposed, want %v", retain, got, ids)
		}
	}
	want(1, 1, 4)
	want(0, 1, 4)
	want(3, 1)
	want(9)
	h.refused(Dispose{IDs: []checkpoint.ID{6}}, "newest")
	h.refused(Dispose{IDs: []checkpoint.ID{1, 2}}, "not committed")
	h.refused(Dispose{IDs: []checkpoint.ID{3}}, "pinned")
	h.add(Committed{ID: 4})
	want(1, 1, 2, 4)
	h.add(Unpin{"keep"})
	want(1, 1, 2, 3, 4)
	h.add(Dispose{IDs: []checkpoint.ID{1, 2, 3}})
	h.refused(Dispose{IDs: []checkpoint.ID{1}}, "not in the log")
	h.refused(Pin{"late", 1}, "disposed")
	h.refused(Restore{From: 1}, "disposed")
	if got := ids(h.v.Uncommitted()); !slices.Equal(got, []checkpoint.ID{5}) {
		t.Errorf("uncommitted %v, want 5", got)
	}
}

func TestCommittedReachesAncestorsOnly(t *testing.T) {
	h := begin(t)
	h.ckpt(1, true)
	h.ckpt(2, true)
	h.ckpt(3, true)
	fork := h.add(Restore{From: 2})
	h.ckpt(4, true)
	h.ckpt(5, true)
	h.add(Committed{ID: 4, Lineage: fork})
	if got := ids(h.v.Uncommitted()); !slices.Equal(got, []checkpoint.ID{3, 5}) {
		t.Errorf("uncommitted %v, want 3 of the branch that was left, and 5", got)
	}
	if !h.v.CommittedAbove(2) || h.v.CommittedAbove(4) {
		t.Error("a sink has committed above 2 and not above 4")
	}
}

func TestNewestReservationCounts(t *testing.T) {
	h := begin(t)
	h.ckpt(1, false)
	h.add(Reserve{[]Reservation{{Source: "s", Split: "b", N: 5}, {Source: "s", Split: "a", N: 1}}})
	h.add(Reserve{[]Reservation{{Source: "s", Split: "b", N: 9}}})
	h.add(Takeover{Owner: "b"})
	h.add(Restore{From: 1})
	for split, n := range map[string]int64{"a": 1, "b": 9} {
		if r, ok := h.v.Reservation("s", split); !ok || r.N != n {
			t.Errorf("split %s: %+v, want %d", split, r, n)
		}
	}
	h.add(Restore{})
	if r, ok := h.v.Reservation("s", "a"); ok {
		t.Errorf("a fresh start goes on at %+v", r)
	}
}

// TestFloorCarriesAll: a log that is read from a Floor says what it says read
// from the beginning.
func TestFloorCarriesAll(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	mustAppend(t, l, ckpt(l, 1), ckpt(l, 2), Pin{"p", 1}, Reserve{[]Reservation{{Source: "s", Split: "x", N: 3, State: []byte{1}}}})
	c := ckpt(l, 3)
	c.Committables = true
	mustAppend(t, l, c, Committed{ID: 2}, Resolve{"sink", "c1", CommitIt}, ckpt(l, 4), Dispose{[]checkpoint.ID{2}}, Restore{From: 1})
	mustAppend(t, l, ckpt(l, 5))
	before := l.View()
	if err := l.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := Read(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if after.Tail != before.Tail+1 {
		t.Errorf("tail %d, want %d", after.Tail, before.Tail+1)
	}
	if diff := cmp.Diff(before.State, after.State); diff != "" {
		t.Error(diff)
	}
	mustAppend(t, l, ckpt(l, 6), Committed{ID: 6, Lineage: l.View().Lineage})
}

func TestViewIsACopy(t *testing.T) {
	s := memstore.New()
	l, v := takeOver(t, s, "a")
	mustAppend(t, l, ckpt(l, 1), Reserve{[]Reservation{{Source: "s", Split: "x", N: 3}}})
	mid := l.View()
	mustAppend(t, l, Reserve{[]Reservation{{Source: "s", Split: "x", N: 9}}}, Committed{ID: 1}, ckpt(l, 2), Dispose{[]checkpoint.ID{1}})
	if r, _ := mid.Reservation("s", "x"); r.N != 3 || mid.Checkpoints[0].Committed || latestID(mid) != 1 || latestID(v) != 0 {
		t.Errorf("a view changed: %+v", mid)
	}
}
