package inspect_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage/memstore"
)

// fixture is a store as two starts of a job leave it, the same whenever it is
// made:
//
//	generation 1: checkpoint 1 pinned, 2 with statistics in an object, and what a crash left of 3
//	generation 2: 3 and 4 failed, 5 is complete and not committed, 6 is being taken
type fixture struct {
	t      *testing.T
	store  *memstore.Store
	log    *ckptlog.Log
	nonces uint64
	epoch  checkpoint.Epoch
}

// start is when checkpoint 1 was triggered, second a second.
const (
	start  = 1_767_323_045_678_000_000
	second = 1_000_000_000
	milli  = 1_000_000
)

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, store: memstore.New()}
	f.takeOver("process 1 on host")
	f.complete(1, 3000, false, nil)
	f.append(ckptlog.Pin{Name: "before-upgrade", ID: 1})
	f.complete(2, 4000, true, nil)
	f.append(ckptlog.Committed{ID: 2})
	f.object(checkpoint.ObjectName(f.origin(3), []byte{0xde, 0xad}), 700)
	f.object(checkpoint.ManifestName(f.origin(3), []byte{0xde, 0xad}), 300)
	f.object("obj/readme", 10)
	f.takeOver("process 2 on host")
	f.complete(5, 5000, true, []checkpoint.Stats{
		{ID: 3, Triggered: start + 20*second, Failure: &checkpoint.Failure{
			Reason: checkpoint.Expired, Phase: checkpoint.PhaseAcks, At: start + 30*second, Waiting: []checkpoint.SubtaskID{{Vertex: "account", Index: 1}},
		}},
		{ID: 4, Triggered: start + 31*second, Subtasks: f.subtasks(start + 31*second)[:1], Failure: &checkpoint.Failure{
			Reason: checkpoint.AsyncFailed, Detail: "disk full", Subtask: &checkpoint.SubtaskID{Vertex: "account", Index: 0}, Phase: checkpoint.PhaseAcks,
			At: start + 31*second + 80*milli, Waiting: []checkpoint.SubtaskID{{Vertex: "account", Index: 0}, {Vertex: "account", Index: 1}},
		}},
	})
	f.object(checkpoint.ObjectName(f.origin(6), []byte{0xaa}), 500)
	return f
}

func (f *fixture) nonce() (b [16]byte) {
	f.nonces++
	binary.BigEndian.PutUint64(b[:], f.nonces)
	return b
}

func (f *fixture) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) takeOver(owner string) {
	f.t.Helper()
	log, _, err := ckptlog.TakeOver(f.t.Context(), ckptlog.Config{
		Store: f.store, Nonce: f.nonce, Owner: owner, Wait: func(context.Context, int) error { return nil },
	}, ckptlog.Genesis{Job: "orders"})
	f.check(err)
	f.log, f.epoch = log, checkpoint.Epoch{Generation: log.Generation(), Attempt: 1}
}

func (f *fixture) append(r ckptlog.Record) {
	f.t.Helper()
	f.check(f.log.Append(f.t.Context(), r))
}

func (f *fixture) origin(id checkpoint.ID) checkpoint.Origin {
	return checkpoint.Origin{Epoch: f.epoch, ID: id}
}

func (f *fixture) object(name string, size int) {
	f.check(f.store.Create(f.t.Context(), name, make([]byte, size)))
}

// complete takes a checkpoint of a source, a keyed state of two subtasks, and a
// sink, and appends it.
func (f *fixture) complete(id checkpoint.ID, entries int, output bool, failed []checkpoint.Stats) {
	f.t.Helper()
	ctx := f.t.Context()
	triggered := start + (int64(id)-1)*10*second
	packer := statefile.NewPacker(ctx, f.store, statefile.Options{
		Name: func() string { n := f.nonce(); return checkpoint.ObjectName(f.origin(id), n[6:8]) }, ID: f.nonce,
	})
	defer packer.Abort()
	m := &checkpoint.Manifest{
		Job: "orders", ID: id, Epoch: f.epoch, Mode: checkpoint.ExactlyOnce, HashID: 1, Triggered: triggered, Finished: triggered + 45*milli,
	}
	if id == 5 {
		m.Parent = 2
	}
	refs, objects := f.state(packer, entries)
	m.Objects = objects
	whole := checkpoint.StateManifest{Name: "balance", Kind: checkpoint.ValueState}
	for i, r := range refs {
		whole.Segments = append(whole.Segments, checkpoint.Segment{Range: halves[i], Base: r})
		whole.Entries += r.Entries
		whole.Bytes += r.Bytes
	}
	end := int64(20_000)
	m.Operators = []checkpoint.OperatorManifest{
		{Name: "orders", Kind: "source", Parallelism: 2, Records: 7200, Finished: []int{1}, Splits: f.table(packer, m,
			checkpoint.Split{ID: "a.jsonl", N: 12_345, Weight: 20_000}, checkpoint.Split{ID: "b.jsonl", N: 20_000, End: &end, Weight: 20_000, Done: true})},
		{Name: "account", Kind: "process", Parallelism: 2, States: []checkpoint.StateManifest{whole}},
		{Name: "ledger", Kind: "sink", Parallelism: 1, Records: 7100},
	}
	if output {
		m.Operators[2].Committables = f.table(packer, m, checkpoint.Committable{ID: fmt.Sprintf("ledger-%d", id), Prepared: id, Data: []byte("file")})
	}
	own := checkpoint.Stats{
		ID: id, Triggered: triggered, Enumerated: triggered + milli, LastAck: triggered + 45*milli, Bytes: whole.Bytes, Subtasks: f.subtasks(triggered),
	}
	if id == 2 { // too many to be kept in the manifest
		for i := range 400 {
			own.Subtasks[2].Splits = append(own.Subtasks[2].Splits, checkpoint.SplitStats{Operator: "orders", Split: fmt.Sprint(i), N: int64(i) * 1e9})
		}
	}
	stats := []any{own}
	for _, s := range failed {
		stats = append(stats, s)
	}
	m.Statistics = f.table(packer, m, stats...)
	b, err := m.Encode()
	f.check(err)
	n := f.nonce()
	name := checkpoint.ManifestName(f.origin(id), n[6:8])
	f.check(f.store.Create(ctx, name, b))
	f.append(ckptlog.Checkpoint{
		ID: id, Parent: m.Parent, Epoch: f.epoch, Committables: output,
		Manifest: ckptlog.Manifest{Name: name, Size: int64(len(b)), CRC: crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))},
	})
}

var halves = []checkpoint.HashRange{{Hi: 1<<63 - 1}, {Lo: 1 << 63, Hi: math.MaxUint64}}

// state writes a run for each half of the hashes, of several blocks.
func (f *fixture) state(packer *statefile.Packer, entries int) ([]checkpoint.Ref, []checkpoint.Object) {
	f.t.Helper()
	var runs []*statefile.Pending
	for i, half := range halves {
		w := packer.NewRun(statefile.RunConfig{Kind: checkpoint.BaseRun, Range: half, KeyWidth: 8, SubWidth: statefile.Absent, ValWidth: statefile.Variable})
		for e := range entries {
			hash := half.Lo + uint64(e)*(1<<50)
			// Values that do not compress, so that there is more than one block.
			value := binary.BigEndian.AppendUint64(nil, (hash+uint64(i)+1)*0x9e3779b97f4a7c15)
			for range 3 {
				value = binary.BigEndian.AppendUint64(value, binary.BigEndian.Uint64(value[len(value)-8:])*0xbf58476d1ce4e5b9)
			}
			f.check(w.Add(hash, binary.BigEndian.AppendUint64(nil, uint64(e)), nil, value, 0))
		}
		p, err := w.Finish()
		f.check(err)
		runs = append(runs, p)
	}
	refs, objects, err := statefile.Collect(f.t.Context(), runs...)
	f.check(err)
	return refs, objects
}

func (f *fixture) table(packer *statefile.Packer, m *checkpoint.Manifest, rows ...any) *checkpoint.Ref {
	f.t.Helper()
	w := packer.NewRun(statefile.RunConfig{Kind: checkpoint.TableRun, KeyWidth: statefile.Variable, SubWidth: statefile.Absent, ValWidth: statefile.Variable})
	for i, r := range rows {
		b, err := cbor.Marshal(r)
		f.check(err)
		f.check(w.Add(0, fmt.Append(nil, i), nil, b, 0))
	}
	p, err := w.Finish()
	f.check(err)
	refs, objects, err := statefile.Collect(f.t.Context(), p)
	f.check(err)
	if refs[0].Object >= 0 {
		refs[0].Object = len(m.Objects)
		m.Objects = append(m.Objects, objects...)
	}
	return &refs[0]
}

// subtasks are the statistics of a checkpoint whose last barrier is that of
// orders/1 at account/1, 30 ms late.
func (f *fixture) subtasks(at int64) []checkpoint.SubtaskStats {
	orders := []checkpoint.SubtaskID{{Vertex: "orders", Index: 0}, {Vertex: "orders", Index: 1}}
	account := func(i int, wait int64, queued int64) checkpoint.SubtaskStats {
		return checkpoint.SubtaskStats{
			Subtask: checkpoint.SubtaskID{Vertex: "account", Index: i}, First: at + 3*milli, Last: at + 3*milli + wait, Alignment: wait,
			Prepare: milli / 2, Sync: milli / 50, Async: 8 * milli, Acked: at + 15*milli + wait, Bytes: 64_000,
			Channels: []checkpoint.ChannelStats{{From: orders[0], Arrived: at + 3*milli}, {From: orders[1], Arrived: at + 3*milli + wait, Queued: queued}},
		}
	}
	return []checkpoint.SubtaskStats{
		account(0, 400_000, 12), account(1, 30*milli, 1800),
		{Subtask: orders[0], First: at + milli, Last: at + milli, Sync: 5000, Async: 20_000, Acked: at + 2*milli},
		{Subtask: orders[1], First: at + milli, Last: at + milli, Sync: 5000, Async: 20_000, Acked: at + 2*milli},
	}
}
