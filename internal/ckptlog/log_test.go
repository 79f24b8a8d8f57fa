package ckptlog

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

var genesis = Genesis{Job: "orders", JobID: [16]byte{1, 2, 3}, HashID: 1, HashSeed: 42}

var lastNonce atomic.Uint64

func testNonce() (n [16]byte) {
	binary.BigEndian.PutUint64(n[:], lastNonce.Add(1))
	return n
}

var errEnough = errors.New("enough tries")

// config has a Wait that allows three tries.
func config(s storage.Store, owner string) Config {
	return Config{Store: s, Nonce: testNonce, Owner: owner, Wait: func(_ context.Context, attempt int) error {
		if attempt >= 2 {
			return errEnough
		}
		return nil
	}}
}

func takeOver(t *testing.T, s storage.Store, owner string) (*Log, View) {
	t.Helper()
	l, v, err := TakeOver(t.Context(), config(s, owner), genesis)
	if err != nil {
		t.Fatalf("%s takes over: %v", owner, err)
	}
	return l, v
}

func mustAppend(t *testing.T, l *Log, rs ...Record) {
	t.Helper()
	for _, r := range rs {
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatalf("append %+v: %v", r, err)
		}
	}
}

// ckpt is the next checkpoint of l with the given id.
func ckpt(l *Log, id checkpoint.ID) Checkpoint {
	v := l.View()
	latest, _ := v.Latest()
	return Checkpoint{
		ID: id, Lineage: v.Lineage, Parent: latest.ID, Epoch: checkpoint.Epoch{Generation: l.Generation(), Attempt: 1},
		Manifest: Manifest{Name: "ckpt/m", Size: 10, CRC: 7},
	}
}

func latestID(v View) checkpoint.ID {
	c, _ := v.Latest()
	return c.ID
}

// fate gives the calls that match their outcomes, in turn; later ones proceed.
func fate(verb memstore.Verb, name string, outs ...memstore.Outcome) func(memstore.Op) memstore.Outcome {
	return func(op memstore.Op) (out memstore.Outcome) {
		if op.Verb == verb && strings.HasPrefix(op.Name, name) && len(outs) > 0 {
			out, outs = outs[0], outs[1:]
		}
		return out
	}
}

// always gives every matching call the outcome.
func always(verb memstore.Verb, name string, out memstore.Outcome) func(memstore.Op) memstore.Outcome {
	return func(op memstore.Op) memstore.Outcome {
		if op.Verb == verb && strings.HasPrefix(op.Name, name) {
			return out
		}
		return memstore.Outcome{}
	}
}

func TestBeginAndGoOn(t *testing.T) {
	d := memstore.NewDisk()
	a, v := takeOver(t, d.Open(), "a")
	if v.Job != "orders" || v.HashSeed != 42 || v.Generation != 1 || v.NextID() != 1 || v.Tail != 1 {
		t.Errorf("new log: %+v", v)
	}
	if _, there := v.Latest(); there {
		t.Error("a new log has a checkpoint")
	}
	mustAppend(t, a, ckpt(a, 1), ckpt(a, 2))

	b, v := takeOver(t, d.Open(), "b")
	if latestID(v) != 2 || v.NextID() != 3 || v.Generation != 4 || v.Owner != "b" {
		t.Errorf("log taken over: %+v", v)
	}
	mustAppend(t, b, ckpt(b, 3))
	read, err := Read(t.Context(), d.Open())
	if err != nil || latestID(read) != 3 {
		t.Errorf("Read: %+v, %v", read, err)
	}
}

func TestNotWrittenLeavesTheLogUsable(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	s.Hook = fate(memstore.Create, "log/", memstore.Outcome{Fate: memstore.Refuse})
	if err := l.Append(t.Context(), ckpt(l, 1)); !errors.Is(err, storage.ErrNotWritten) || l.Undecided() {
		t.Errorf("append: %v, want ErrNotWritten", err)
	}
	mustAppend(t, l, ckpt(l, 2))
	if v, _ := Read(t.Context(), s); latestID(v) != 2 || v.Tail != 2 {
		t.Errorf("log: %+v", v)
	}
}

func TestEmptyLog(t *testing.T) {
	if _, err := Read(t.Context(), memstore.New()); !errors.Is(err, ErrEmpty) {
		t.Errorf("Read: %v, want ErrEmpty", err)
	}
}

func TestOneCallAtATime(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	var inner error
	s.Yield = func(op memstore.Op) {
		if op.Verb == memstore.Create {
			inner = l.Owned(context.Background())
		}
	}
	mustAppend(t, l, Reserve{})
	if !errors.Is(inner, ErrBusy) {
		t.Errorf("second call: %v, want ErrBusy", inner)
	}
}

func TestCancelledAppendIsNotWritten(t *testing.T) {
	s := memstore.New()
	l, _ := takeOver(t, s, "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Append(ctx, ckpt(l, 1)); !errors.Is(err, context.Canceled) || !errors.Is(err, storage.ErrNotWritten) || l.Undecided() {
		t.Errorf("append: %v, undecided %v", err, l.Undecided())
	}
	mustAppend(t, l, ckpt(l, 1))
}
