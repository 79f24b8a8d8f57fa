package statestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
)

// ErrAborted says that a snapshot was given up while it was written.
var ErrAborted = errors.New("statestore: snapshot was aborted")

// Snapshot is the state of a store at one moment. Write and Abort may be called
// on any goroutine, Release when nobody is in Write any more.
type Snapshot struct {
	version uint32
	slot    int // in Store.live and page.marks
	now     int64
	rng     checkpoint.HashRange
	mul     uint64
	tables  []tableView

	aborted  atomic.Bool
	released atomic.Bool
}

// tableView is a table as a snapshot sees it. Besides what is copied here it
// uses what never changes: declaration, geometry, hash.
type tableView struct {
	t      *Table
	dirs   [subDirs]dir
	space  spaceView
	sub    spaceView // of a map state
	roots  []*dir
	blocks [][]byte
	chunks [][]byte
	bytes  int64 // estimate, to choose the segments
	lead   int   // pages that the reader may be ahead
}

// spaceView is what ids in a space referred to.
type spaceView struct {
	sp       *space
	pages    []*page
	overlays []*overlay
}

func (sp *space) view() spaceView { return spaceView{sp, sp.pages, sp.overlays.list} }

// Snapshot is the sync phase: it freezes the state as it is. Its work depends on
// the number of states alone: a new version, and copies of slice headers.
func (s *Store) Snapshot(id uint64) (*Snapshot, error) {
	s.forget()
	slot := 0
	if s.live[slot] != nil {
		if slot = 1; s.live[slot] != nil {
			return nil, ErrBusy
		}
	}
	if s.version >= math.MaxInt32 {
		return nil, fmt.Errorf("statestore: %d snapshots were taken; a restart of the job begins anew", s.version)
	}
	sn := &Snapshot{
		version: s.version, slot: slot, now: s.cfg.Now(),
		rng: s.cfg.Range, mul: s.mul(),
		tables: make([]tableView, len(s.tables)),
	}
	for i, t := range s.tables {
		v := &sn.tables[i]
		v.t, v.dirs, v.space, v.chunks = t, t.dirs, t.sp.view(), t.sp.arena.chunks
		v.lead = t.sp.planAhead()
		v.bytes = int64(t.sp.entries)*int64(t.sp.stride) + t.sp.arena.live
		if t.maps != nil {
			v.sub, v.roots = t.maps.sub.view(), t.maps.roots
			v.bytes += int64(t.maps.sub.entries) * int64(t.maps.sub.stride)
		}
		if t.lists != nil {
			v.blocks = t.lists.blocks
			v.bytes += t.lists.held
		}
	}
	s.live[slot] = sn
	s.taken = append(s.taken[max(0, len(s.taken)-maxTaken+1):], takenSnapshot{id, s.version})
	s.version++
	s.seq++ // cursors know nothing of versions
	return sn, nil
}

// maxTaken bounds the snapshots whose checkpoints may still be confirmed.
const maxTaken = 64

// Abort makes Write return at the next page.
func (sn *Snapshot) Abort() { sn.aborted.Store(true) }

// Release ends the snapshot: what only it could see is free. It must be called
// once nobody is in Write; until then the snapshot counts as live.
func (sn *Snapshot) Release() { sn.released.Store(true) }

// Write is the async phase: it writes all live entries, in ascending order of
// key hashes, and waits until they are durable. Nothing is short: an error says
// that the snapshot is not written.
func (sn *Snapshot) Write(ctx context.Context, p *statefile.Packer) ([]checkpoint.StateAck, error) {
	runs := make([]stateRuns, len(sn.tables))
	for i := range sn.tables {
		v := &sn.tables[i]
		w := newTableWriter(ctx, sn, v, p)
		r, err := w.write()
		if err != nil {
			return nil, fmt.Errorf("write state %q: %w", v.t.decl.Name, err)
		}
		runs[i] = r
	}
	acks := make([]checkpoint.StateAck, len(sn.tables))
	for i := range runs {
		d := &sn.tables[i].t.decl
		refs, objects, err := statefile.Collect(ctx, runs[i].pending...)
		if err != nil {
			return nil, fmt.Errorf("write state %q: %w", d.Name, err)
		}
		ack := checkpoint.StateAck{State: d.Name, Objects: objects}
		for j, ref := range refs {
			ack.Segments = append(ack.Segments, checkpoint.Segment{Range: runs[i].ranges[j], Base: ref})
			ack.Entries += ref.Entries
			ack.Bytes += ref.Bytes
		}
		if d.TTL > 0 {
			ack.TTLFloor = max(0, (sn.now-int64(d.TTL))/int64(time.Second)-1)
		}
		acks[i] = ack
	}
	return acks, nil
}

// check says whether Write may go on.
func (sn *Snapshot) check(ctx context.Context) error {
	if sn.aborted.Load() {
		return ErrAborted
	}
	return ctx.Err()
}

// leave says that the reader reads the page no more: the writer may change it.
func (sn *Snapshot) leave(p *page) { p.marks[sn.slot].Store(sn.version) }

// overlay returns the overlay through which the snapshot sees a page, or nil. A
// newer one is the writer's, made since.
func (sn *Snapshot) overlay(v *spaceView, p *page) *overlay {
	i := p.overlay.Load()
	if i == 0 || int(i) > len(v.overlays) {
		return nil
	}
	if o := v.overlays[i-1]; o.own <= sn.version {
		return o
	}
	return nil
}

// Segments are the aligned intervals into which the index of a table is cut:
// a power of two of them, so that those of a larger state nest in those of a
// smaller one.
const (
	segmentBytes = 8 << 20
	maxSegments  = 256
)

// segmentBits is the log2 of how many segments a state has.
func segmentBits(bytes int64) uint8 {
	n := uint64(max(bytes-1, 0)) / segmentBytes
	return uint8(min(bits.Len64(n), bits.Len(maxSegments)-1))
}

// segment returns which segment a hash is in, and the hashes of that segment.
func (sn *Snapshot) segment(hash uint64, bitCount uint8) checkpoint.HashRange {
	if bitCount == 0 {
		return sn.rng
	}
	i := (hash - sn.rng.Lo) * sn.mul >> (64 - bitCount)
	r := checkpoint.HashRange{Lo: sn.begin(i, bitCount), Hi: sn.rng.Hi}
	if i+1 < 1<<bitCount {
		r.Hi = min(sn.rng.Hi, sn.begin(i+1, bitCount)-1)
	}
	return r
}

// begin is the least hash of segment i: the least h with (h-lo)*mul at or above
// i*2^(64-bits).
func (sn *Snapshot) begin(i uint64, bitCount uint8) uint64 {
	x := i << (64 - bitCount)
	q := x / sn.mul
	if x%sn.mul != 0 {
		q++
	}
	return sn.rng.Lo + q
}
