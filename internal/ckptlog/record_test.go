package ckptlog

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// samples has a record of each kind with all fields set.
func samples() []Record {
	c := Checkpoint{
		ID: 7, Lineage: 5, Parent: 6, Epoch: checkpoint.Epoch{Generation: 4, Attempt: 2}, Purpose: checkpoint.Savepoint,
		Manifest: Manifest{Name: "ckpt/m-7", Size: 1234, CRC: 0xdeadbeef}, Committables: true,
	}
	r := Reservation{Source: "orders", Split: "a.jsonl", N: 4096, State: []byte{1, 2}}
	resolve := Resolve{Operator: "ledger", Committable: "seg-1", Decision: RollBack}
	return []Record{
		Genesis{Job: "orders", JobID: [16]byte{0xaa, 15: 0xbb}, HashID: 1, HashSeed: 1 << 63},
		Takeover{Owner: "host-1 pid 42 since 2026-01-02T03:04:05Z"},
		c,
		Committed{ID: 7, Lineage: 5},
		Reserve{Splits: []Reservation{r}},
		Pin{Name: "before the upgrade", ID: 7},
		Unpin{Name: "before the upgrade"},
		Restore{From: 6, Lineage: 0},
		resolve,
		Dispose{IDs: []checkpoint.ID{3, 4}},
		Void{ID: 8},
		Floor{State: State{
			Job: "orders", JobID: [16]byte{0xaa, 15: 0xbb}, HashID: 1, HashSeed: 1 << 63, Generation: 4, Owner: "host-1",
			Lineage: 5, Lineages: []Lineage{{}, {ID: 5, From: 6}}, LastID: 8,
			Checkpoints: []Retained{{Checkpoint: c, Committed: true, Slot: 9}}, Pins: []Pin{{"before the upgrade", 7}},
			Reservations: []Reservation{r}, Resolves: []Resolve{resolve}, LastCommitted: 7,
		}},
	}
}

// TestGolden holds the bytes of each kind. A change of them is a change of the
// format, and needs a new version.
func TestGolden(t *testing.T) {
	for i, r := range samples() {
		if int(r.Kind()) != i+1 {
			t.Fatalf("sample %d is a %s", i, r.Kind())
		}
		e := Entry{Slot: uint64(i), Nonce: Nonce{0xf0, 15: byte(i)}, Record: r}
		path := filepath.Join("testdata", r.Kind().String()+".golden")
		got := hex.Dump(Encode(e))
		if *rewrite {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s:\n%s", r.Kind(), cmp.Diff(string(want), got))
		}
		back, err := Decode(e.Slot, Encode(e))
		if err != nil || cmp.Diff(e, back) != "" {
			t.Errorf("%s decodes as %v, %s", r.Kind(), err, cmp.Diff(e, back))
		}
	}
}

func TestEveryKindHasASample(t *testing.T) {
	if n := len(samples()); n != len(kindNames)-1 {
		t.Errorf("%d samples of %d kinds", n, len(kindNames)-1)
	}
}

// TestDamageIsFound flips every bit and cuts every length.
func TestDamageIsFound(t *testing.T) {
	for _, r := range samples() {
		b := Encode(Entry{Slot: 12, Record: r})
		for i := range b {
			for bit := range 8 {
				bad := append([]byte(nil), b...)
				bad[i] ^= 1 << bit
				_, err := Decode(12, bad)
				wantCorrupt(t, err, Name(12))
			}
			_, err := Decode(12, b[:i])
			wantCorrupt(t, err, Name(12))
		}
		_, err := Decode(12, append(b, 0))
		wantCorrupt(t, err, Name(12))
	}
}

func TestExchangedRecordIsFound(t *testing.T) {
	b := Encode(Entry{Slot: 5, Record: Takeover{Owner: "a"}})
	_, err := Decode(6, b)
	wantCorrupt(t, err, Name(6))
	if !strings.Contains(err.Error(), "offset 8: slot: expected 6, found 5") {
		t.Errorf("error %v", err)
	}
}

// reseal gives b a checksum that fits.
func reseal(b []byte) []byte {
	end := len(b) - tailSize
	binary.LittleEndian.PutUint32(b[end:], crc32.Checksum(b[:end], castagnoli))
	return b
}

func TestNewerVersionIsNotDamage(t *testing.T) {
	b := Encode(Entry{Slot: 5, Record: Takeover{Owner: "a"}})
	b[4] = 2
	_, err := Decode(5, reseal(b))
	if !errors.Is(err, ErrVersion) || errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v, want ErrVersion", err)
	}
}

func TestUnknownKindIsDamage(t *testing.T) {
	for _, kind := range []byte{0, 200} {
		b := Encode(Entry{Slot: 5, Record: Takeover{Owner: "a"}})
		b[6] = kind
		_, err := Decode(5, reseal(b))
		wantCorrupt(t, err, Name(5))
	}
}

func FuzzRecord(f *testing.F) {
	for i, r := range samples() {
		f.Add(Encode(Entry{Slot: uint64(i), Record: r}), false)
		f.Add(Encode(Entry{Slot: uint64(i), Record: r}), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		var slot uint64
		if len(b) >= headSize+tailSize {
			slot = binary.LittleEndian.Uint64(b[8:])
			if fix { // get past the checksum, to the body
				binary.LittleEndian.PutUint32(b[32:], uint32(len(b)-headSize-tailSize))
				reseal(b)
			}
		}
		e, err := Decode(slot, b)
		if err != nil {
			if c := (*CorruptError)(nil); errors.As(err, &c) {
				if c.Object != Name(slot) || c.Offset < 0 || c.Offset > int64(len(b)) || c.What == "" || c.Expected == "" || c.Found == "" {
					t.Errorf("damage is not described: %+v", c)
				}
			} else if !errors.Is(err, ErrVersion) {
				t.Errorf("error %v", err)
			}
			return
		}
		again, err := Decode(slot, Encode(e))
		if err != nil || cmp.Diff(e, again) != "" {
			t.Errorf("%+v encodes and decodes as %+v, %v", e, again, err)
		}
		// Whatever decodes can be looked at and folded without a panic.
		if fl, ok := e.Record.(Floor); ok && fl.State.whole() == nil {
			v := View{State: fl.State}
			v.Latest()
			v.Disposable(2)
			v.Uncommitted()
		}
	})
}
