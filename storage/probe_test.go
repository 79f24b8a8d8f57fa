package storage_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

// TestProbeNamesWhatFails is what a start relies on to refuse a job whose
// checkpoints could never be written.
func TestProbeNamesWhatFails(t *testing.T) {
	forbidden := errors.New("403 Forbidden")
	for _, tt := range []struct {
		verb memstore.Verb
		out  memstore.Outcome
		want []string
	}{
		{memstore.Create, memstore.Outcome{Fate: memstore.Refuse, Err: forbidden}, []string{"memory", "create probe/", "403"}},
		{memstore.ReadAt, memstore.Outcome{Fate: memstore.Refuse, Err: forbidden}, []string{"memory", "read probe/", "403"}},
		{memstore.ReadAt, memstore.Outcome{Fate: memstore.Damage}, []string{"read probe/", "other bytes"}},
		{memstore.List, memstore.Outcome{Fate: memstore.Refuse, Err: forbidden}, []string{"list probe/", "403"}},
		{memstore.Delete, memstore.Outcome{Fate: memstore.Refuse, Err: forbidden}, []string{"delete probe/", "403"}},
	} {
		s := memstore.New()
		s.Hook = func(op memstore.Op) memstore.Outcome {
			if op.Verb == tt.verb {
				return tt.out
			}
			return memstore.Outcome{}
		}
		err := storage.Probe(t.Context(), s)
		for _, part := range tt.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s %+v: error %v does not say %q", tt.verb, tt.out, err, part)
			}
		}
	}
}

// twice is a store whose second create is not refused, like a server that
// ignores If-None-Match.
type twice struct{ *memstore.Store }

func (s twice) Create(ctx context.Context, name string, b []byte) error {
	s.Disk().Replace(name, nil)
	return s.Store.Create(ctx, name, b)
}

func TestProbeFindsAStoreThatOverwrites(t *testing.T) {
	err := storage.Probe(t.Context(), twice{memstore.New()})
	if err == nil || !strings.Contains(err.Error(), "it was not refused") {
		t.Errorf("error %v", err)
	}
}
