package statestore

import (
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

const (
	subDirBits = 6
	subDirs    = 1 << subDirBits
)

// Table is one declared state: for each key a value, a list, a map or a timer.
// Its accessors work on the entry of the key in hand.
type Table struct {
	s       *Store
	sp      *space
	cur     cursor
	keySize uintptr // as in sp
	plain   bool    // values are plain memory and live for ever
	dirs    [subDirs]dir

	decl    Decl
	timeOff uintptr
	scratch unsafe.Pointer // a typed value, for the writer

	maps   *mapLayer
	lists  *listLayer
	timers *timerIndex

	sweeper sweeper
	shown   atomic.Int64 // entries, for other goroutines
}

// cursor is where the key in hand is. off is 0 if it is not there.
type cursor struct {
	seq      uint64
	p        *page
	off      uintptr
	groupOff uintptr
	slot     int
}

func (c *cursor) group() *group { return (*group)(c.p.at(c.groupOff)) }

// point puts the cursor of the key in hand.
func (t *Table) point(p *page, slot int, off uintptr) {
	c := &t.cur
	c.seq, c.p, c.off, c.slot = t.s.seq, p, off, slot
	c.groupOff = pageHeader + uintptr(slot>>3)*t.sp.groupLen
}

func newTable(s *Store, d Decl) (*Table, error) {
	t := &Table{s: s, decl: d}
	for i := range t.dirs {
		t.dirs[i] = newDir()
	}
	tail := d.Value.size
	switch d.Kind {
	case checkpoint.MapState:
		tail = unsafe.Sizeof(mapRoot{})
	case checkpoint.ListState:
		tail = unsafe.Sizeof(listRoot{})
	case checkpoint.TimerState:
		tail = unsafe.Sizeof(int64(0))
	}
	t.sp = newSpace(s, s.cfg.Key, s.cfg.Key.bind(s.cfg.Seed), newArena(s), t.withTime(tail, d.Kind != checkpoint.MapState))
	t.keySize = t.sp.keySize
	t.sp.lo, t.sp.mul, t.sp.skip = s.cfg.Range.Lo, s.mul(), subDirBits
	if d.Value.make != nil {
		t.scratch = d.Value.make()
	}
	switch d.Kind {
	case checkpoint.ValueState:
		t.plain = d.Value.form == plainValue && d.TTL == 0
		t.sp.dropTail = t.dropValue
	case checkpoint.ListState:
		t.lists = newListLayer(t)
		t.sp.dropTail = t.lists.dropTail
	case checkpoint.MapState:
		t.maps = newMapLayer(t)
		t.sp.dropTail = t.maps.dropTail
	case checkpoint.TimerState:
		t.plain = true
		t.timers = &timerIndex{}
		t.sp.dropTail = func(unsafe.Pointer) {}
	}
	return t, nil
}

// newSpace makes the pages of a table or of its maps.
func newSpace(s *Store, key KeyType, hash func([]byte) uint64, a *arena, tail uintptr) *space {
	sp := &space{s: s, key: key, hash: hash, arena: a, mul: 1}
	if sp.word = key.word(); sp.word {
		sp.hashWords = key.bindWords(s.cfg.Seed)
	}
	sp.geometry = newGeometry(key.slotKeySize(), tail)
	sp.overlays.size = overlayHeader + overlaySlots*sp.tailSize
	return sp
}

// withTime is the size of a tail, with a write time if the state has a TTL.
func (t *Table) withTime(tail uintptr, timed bool) uintptr {
	if t.decl.TTL == 0 || !timed {
		return tail
	}
	t.timeOff = (tail + 3) &^ 3
	return t.timeOff + 4
}

// Name is the name of the state.
func (t *Table) Name() string { return t.decl.Name }

// Decl is what the state was declared as.
func (t *Table) Decl() *Decl { return &t.decl }

func (t *Table) dir(hash uint64) (*dir, uint64) {
	n := (hash - t.sp.lo) * t.sp.mul
	return &t.dirs[n>>(64-subDirBits)], n << subDirBits
}

// seek finds the key in hand.
func (t *Table) seek() {
	s := t.s
	if !s.keyed {
		fail("state %q was used outside a call: no key is in hand", t.decl.Name)
	}
	d, x := t.dir(s.key.hash)
	p := d.at(x)
	if t.sp.word {
		slot, off := t.sp.findWord(p, d.mask, s.key.hash, s.key.inline[0])
		t.point(p, slot, off)
		return
	}
	slot, off := t.sp.find(p, d.mask, &s.key)
	t.point(p, slot, off)
}

// tail returns the tail of the entry in hand for reading; nil if it is not
// there or has expired.
func (t *Table) tail() unsafe.Pointer {
	if t.cur.seq != t.s.seq {
		t.seek()
	}
	if t.cur.off == 0 {
		return nil
	}
	tail := t.sp.tail(t.cur.p, t.cur.slot, t.cur.off)
	if t.timeOff != 0 && t.expired(tail) {
		return nil
	}
	return tail
}

// slot returns the tail of the entry in hand for writing, and adds the entry,
// zeroed, if it is not there.
func (t *Table) slot() unsafe.Pointer {
	if t.cur.seq != t.s.seq {
		t.seek()
	}
	k := &t.s.key
	if t.cur.off == 0 {
		d, _ := t.dir(k.hash)
		t.point(t.sp.insert(d, k))
		return t.stamp(t.cur.p.at(t.cur.off + t.sp.keySize))
	}
	tail, p := t.sp.writable(t.cur.p, t.cur.slot, t.cur.off)
	if p != t.cur.p {
		d, x := t.dir(k.hash)
		d.replace(t.s, x, p)
		t.cur.p = p
	}
	return t.stamp(tail)
}

// stamp notes the time of a write.
func (t *Table) stamp(tail unsafe.Pointer) unsafe.Pointer {
	if t.timeOff != 0 {
		*(*uint32)(unsafe.Add(tail, t.timeOff)) = t.s.nowSeconds()
	}
	return tail
}

// Delete removes the entry in hand.
func (t *Table) Delete() {
	if t.cur.seq != t.s.seq {
		t.seek()
	}
	if t.cur.off == 0 {
		return
	}
	d, x := t.dir(t.s.key.hash)
	p := t.sp.exclusiveIn(d, x)
	t.sp.remove(p, t.cur.slot, t.cur.off)
	t.cur.p, t.cur.off = p, 0
}

// Has says whether the key in hand has an entry.
func (t *Table) Has() bool { return t.tail() != nil }

// Len is the number of keys with an entry, expired ones included.
func (t *Table) Len() int { return t.sp.entries }

// Entries is Len, with the entries of maps counted one by one, as it was when
// the last key was let go of. It may be called from any goroutine.
func (t *Table) Entries() int64 { return t.shown.Load() }

// show makes the number of entries known to other goroutines.
func (t *Table) show() {
	n := t.sp.entries
	if t.maps != nil {
		n = t.maps.sub.entries
	}
	if t.shown.Load() != int64(n) {
		t.shown.Store(int64(n))
	}
}

func (t *Table) dropValue(tail unsafe.Pointer) { t.decl.Value.drop(t.sp.arena, tail) }

// expired says whether the entry with this tail is dead by its TTL.
func (t *Table) expired(tail unsafe.Pointer) bool {
	return t.s.expired(*(*uint32)(unsafe.Add(tail, t.timeOff)), t.decl.TTL, t.s.cfg.Now())
}

// expired says whether what was written in a second is dead at a time. The
// second counts as if it had been written at its end.
func (s *Store) expired(written uint32, ttl time.Duration, now int64) bool {
	return now >= (int64(written)+1)*int64(time.Second)+int64(ttl)
}

func (s *Store) nowSeconds() uint32 {
	return uint32(min(max(s.cfg.Now()/int64(time.Second), 0), math.MaxUint32))
}
