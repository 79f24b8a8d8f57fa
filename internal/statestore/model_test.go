package statestore

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/keyhash"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

// account is a flat value with strings and padding.
type account struct {
	Open  bool
	Name  string
	Cents int64
	Tag   string
}

// words is a value that is not flat.
type words []string

func wordsCodec() codec.Codec[words] { return wordCodec{} }

type wordCodec struct{}

func (wordCodec) Append(dst []byte, v words) ([]byte, error) {
	return append(dst, strings.Join(v, ",")...), nil
}

func (wordCodec) Decode(b []byte) (words, error) {
	if len(b) == 0 {
		return nil, nil
	}
	return strings.Split(string(b), ","), nil
}

func (wordCodec) Schema() codec.Schema { return codec.Schema{Format: "words"} }

// modelKey is everything a model knows of a key.
type modelKey struct {
	count    *int64
	account  *account
	words    words
	list     []string
	fixed    []uint32
	subs     map[uint16]int64
	texts    map[string]account
	timer    *int64
	rival    *int64
	withTime bool
}

func (m *modelKey) clone() *modelKey {
	c := *m
	c.list, c.fixed, c.words = slices.Clone(m.list), slices.Clone(m.fixed), slices.Clone(m.words)
	c.subs, c.texts = maps.Clone(m.subs), maps.Clone(m.texts)
	return &c
}

// states is one store with a state of each kind.
type states[K comparable] struct {
	s     *Store
	keys  *Keyer[K]
	count *Table
	acc   *Table
	words *Table
	list  *Table
	fixed *Table
	subs  *Table
	texts *Table
	timer *Table
	rival *Table
	sub16 *Sub[uint16]
	subS  *Sub[string]
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func newStates[K comparable](seed uint64, r checkpoint.HashRange, full uint8) *states[K] {
	s := New(Config{Range: r, Seed: seed, Key: must(KeyOf[K]()), Now: func() int64 { return int64(time.Hour) }})
	s.minCompact = 4 << 10
	declare := func(d Decl) *Table { return must(s.Declare(d)) }
	st := &states[K]{
		s: s, keys: must(KeyerOf[K](s)),
		count: declare(Decl{Name: "count", Kind: checkpoint.ValueState, Value: must(ValueOf[int64](nil))}),
		acc:   declare(Decl{Name: "account", Kind: checkpoint.ValueState, Value: must(ValueOf[account](nil))}),
		words: declare(Decl{Name: "words", Kind: checkpoint.ValueState, Value: must(ValueOf(wordsCodec()))}),
		list:  declare(Decl{Name: "list", Kind: checkpoint.ListState, Value: must(ValueOf[string](nil))}),
		fixed: declare(Decl{Name: "fixed", Kind: checkpoint.ListState, Value: must(ValueOf[uint32](nil))}),
		subs:  declare(Decl{Name: "subs", Kind: checkpoint.MapState, Value: must(ValueOf[int64](nil)), Sub: must(KeyOf[uint16]())}),
		texts: declare(Decl{Name: "texts", Kind: checkpoint.MapState, Value: must(ValueOf[account](nil)), Sub: must(KeyOf[string]())}),
		timer: declare(Decl{Name: "timer", Kind: checkpoint.TimerState}),
		rival: declare(Decl{Name: "rival", Kind: checkpoint.TimerState}),
		sub16: must(SubOf[uint16](seed)), subS: must(SubOf[string](seed)),
	}
	// Small pages split with few keys.
	for _, t := range s.tables {
		t.sp.full = min(t.sp.full, full)
		if t.maps != nil {
			t.maps.sub.full = min(t.maps.sub.full, full)
		}
	}
	return st
}

func (st *states[K]) take(k K) { st.keys.Set(k, st.keys.Hash(k)) }

// read returns what the store knows of a key; nil if nothing.
func (st *states[K]) read(k K) *modelKey {
	st.take(k)
	m := &modelKey{}
	any := false
	if v, ok := Get[int64](st.count); ok {
		m.count, any = &v, true
	}
	if v, ok := Get[account](st.acc); ok {
		m.account, any = &v, true
	}
	if v, ok := Get[words](st.words); ok {
		m.words, any = v, true
	}
	for v := range ListAll[string](st.list) {
		m.list, any = append(m.list, v), true
	}
	for v := range ListAll[uint32](st.fixed) {
		m.fixed, any = append(m.fixed, v), true
	}
	for k, v := range MapAll[uint16, int64](st.subs, st.sub16) {
		if m.subs == nil {
			m.subs = map[uint16]int64{}
		}
		m.subs[k], any = v, true
	}
	for k, v := range MapAll[string, account](st.texts, st.subS) {
		if m.texts == nil {
			m.texts = map[string]account{}
		}
		m.texts[k], any = v, true
	}
	if at, ok := st.timer.TimerAt(); ok {
		m.timer, any = &at, true
	}
	if at, ok := st.rival.TimerAt(); ok {
		m.rival, any = &at, true
	}
	if len(m.list) != ListLen(st.list) || len(m.fixed) != ListLen(st.fixed) || len(m.subs) != MapLen(st.subs) || len(m.texts) != MapLen(st.texts) {
		panic("lengths do not agree with iteration")
	}
	st.s.EndKey()
	if !any {
		return nil
	}
	return m
}

func show(m *modelKey) string {
	if m == nil {
		return "nothing"
	}
	p := func(v any) string { return fmt.Sprintf("%+v", v) }
	s := ""
	if m.count != nil {
		s += " count " + p(*m.count)
	}
	if m.account != nil {
		s += " account " + p(*m.account)
	}
	if m.timer != nil {
		s += " timer " + p(*m.timer)
	}
	if m.rival != nil {
		s += " rival " + p(*m.rival)
	}
	if len(m.words) > 0 {
		s += " words " + p(m.words)
	}
	if len(m.list) > 0 {
		s += " list " + p(m.list)
	}
	if len(m.fixed) > 0 {
		s += " fixed " + p(m.fixed)
	}
	if len(m.subs) > 0 {
		s += " subs " + p(m.subs)
	}
	if len(m.texts) > 0 {
		s += " texts " + p(m.texts)
	}
	if s == "" {
		return "nothing"
	}
	return s
}

// modelTest runs random operations on a store and on plain maps.
type modelTest[K comparable] struct {
	t     *testing.T
	r     *rand.Rand
	seed  uint64
	full  uint8 // class of the largest pages
	st    *states[K]
	model map[K]*modelKey
	key   func(i int) K
	keys  int
	store storage.Store
	live  []*liveSnapshot[K]
	next  uint64

	taken, written, aborted, two int
}

// liveSnapshot is a snapshot being written, with the model at its barrier.
type liveSnapshot[K comparable] struct {
	id    uint64
	sn    *Snapshot
	model map[K]*modelKey
	gate  chan struct{} // the reader starts when it is closed
	done  chan error
	acks  []checkpoint.StateAck
	abort bool
	open  bool
}

func testPacker(ctx context.Context, store storage.Store, prefix string) *statefile.Packer {
	n := 0
	return statefile.NewPacker(ctx, store, statefile.Options{
		Name: func() string { n++; return fmt.Sprintf("%s-%d", prefix, n) },
		ID:   func() [16]byte { return [16]byte{byte(n), byte(n >> 8), 1} },
	})
}

func runModel[K comparable](t *testing.T, seed uint64, keys, steps int, full uint8, key func(int) K) {
	if testing.Short() {
		steps /= 4
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	rng := checkpoint.HashRange{Hi: 1<<64 - 1}
	if r.IntN(2) == 0 {
		rng = keyhash.Split(3)[1]
	}
	m := &modelTest[K]{
		t: t, r: r, seed: seed, full: full, st: newStates[K](seed, rng, full), model: map[K]*modelKey{}, key: key, keys: keys,
		store: memstore.New(),
	}
	for range steps {
		m.step()
	}
	for len(m.live) > 0 {
		m.finish(0)
	}
	for i := range keys {
		m.compare("at the end", m.st, m.model, key(i))
	}
	m.drain()
	deep := 0
	for i := range m.st.count.dirs {
		deep = max(deep, int(m.st.count.dirs[i].depth()))
	}
	t.Logf("directory depth %d", deep)
	t.Logf("snapshots: %d taken, %d written, %d aborted, %d while another was live; %+v", m.taken, m.written, m.aborted, m.two, m.st.s.Memory())
}

func (m *modelTest[K]) step() {
	switch n := m.r.IntN(4000); {
	case n < 4:
		m.snapshot()
	case n < 8 && len(m.live) > 0:
		m.open(m.r.IntN(len(m.live)))
	case n < 12 && len(m.live) > 0:
		m.finish(m.r.IntN(len(m.live)))
	case n < 14:
		m.fire()
	case n < 16:
		m.st.s.Sweep(m.r.IntN(200))
	case n < 20:
		hashes := make([]uint64, 40)
		for i := range hashes {
			hashes[i] = m.st.s.cfg.Range.Lo + m.r.Uint64N(1<<60)
		}
		for _, t := range m.st.s.Tables() {
			m.st.s.sink += t.prefetch(hashes)
		}
	default:
		m.change()
	}
}

// in says whether the store owns the key.
func (m *modelTest[K]) pick() (k K, ok bool) {
	n := m.keys
	if m.r.IntN(3) > 0 {
		n = max(1, n/50) // hot ones
	}
	k = m.key(m.r.IntN(n))
	return k, m.st.s.cfg.Range.Contains(m.st.keys.Hash(k))
}

func (m *modelTest[K]) text() string {
	return strings.Repeat(string(rune('a'+m.r.IntN(26))), m.r.IntN(40))
}

func (m *modelTest[K]) change() {
	k, ok := m.pick()
	if !ok {
		return
	}
	r, st := m.r, m.st
	e := m.model[k]
	if e == nil {
		e = &modelKey{}
		m.model[k] = e
	}
	st.take(k)
	v := r.Int64N(1000)
	switch r.IntN(20) {
	case 0, 1, 2:
		old, ok := Get[int64](st.count)
		if ok != (e.count != nil) || ok && old != *e.count {
			m.t.Fatalf("key %v: count %d, %v", k, old, ok)
		}
		v += old
		if own := Own[int64](st.count); own != nil && r.IntN(2) == 0 {
			if *own != old {
				m.t.Fatalf("key %v: count %d in its place, %d by Get", k, *own, old)
			}
			*own = v
		} else {
			Set(st.count, v)
		}
		e.count = &v
	case 3:
		st.count.Delete()
		e.count = nil
	case 4, 5:
		a, _ := Get[account](st.acc)
		a.Cents += v
		if r.IntN(2) == 0 {
			a.Name = m.text()
		}
		if r.IntN(4) == 0 {
			a.Tag, a.Open = m.text(), !a.Open
		}
		Set(st.acc, a)
		e.account = &a
	case 6:
		st.acc.Delete()
		e.account = nil
	case 7:
		w := words{m.text() + "x", m.text()}
		Set(st.words, w)
		e.words = slices.Clone(w)
	case 8:
		st.words.Delete()
		e.words = nil
	case 9, 10:
		xs := []string{m.text(), m.text()}[:1+r.IntN(2)]
		ListAppend(st.list, xs...)
		e.list = append(e.list, xs...)
		ListAppend(st.fixed, uint32(v))
		e.fixed = append(e.fixed, uint32(v))
	case 11:
		if r.IntN(3) == 0 {
			xs := make([]string, r.IntN(4))
			ListSet(st.list, xs)
			e.list = slices.Clone(xs)
			st.fixed.Delete()
			e.fixed = nil
		}
	case 12, 13:
		for range 1 + r.IntN(4) {
			if e.subs == nil {
				e.subs = map[uint16]int64{}
			}
			s := uint16(r.IntN(400))
			MapSet(st.subs, st.sub16, s, v)
			e.subs[s] = v
		}
	case 14:
		s := uint16(r.IntN(400))
		MapDelete(st.subs, st.sub16, s)
		delete(e.subs, s)
		if r.IntN(200) == 0 {
			st.subs.Delete()
			e.subs = nil
		}
	case 15:
		if e.texts == nil {
			e.texts = map[string]account{}
		}
		s := fmt.Sprintf("%0*d", 1+r.IntN(12), r.IntN(9))
		a := account{Name: m.text(), Cents: v, Tag: s}
		MapSet(st.texts, st.subS, s, a)
		e.texts[s] = a
	case 16:
		m.deleteInside(k, e)
	case 17:
		st.timer.TimerSet(v)
		e.timer = &v
	case 18:
		st.rival.TimerSet(v)
		e.rival = &v
	case 19:
		st.timer.Delete()
		e.timer = nil
	}
	st.s.EndKey()
	if r.IntN(20) == 0 {
		m.compare("after a change", st, m.model, k)
	}
}

// deleteInside deletes and changes entries of a map while iterating over it.
func (m *modelTest[K]) deleteInside(k K, e *modelKey) {
	st := m.st
	last := ""
	seen := map[string]bool{}
	for s, a := range MapAll[string, account](st.texts, st.subS) {
		if s <= last && len(seen) > 0 {
			m.t.Fatalf("key %v: map key %q after %q", k, s, last)
		}
		last = s
		if seen[s] || e.texts[s] != a {
			m.t.Fatalf("key %v: iteration yields %q: %+v, not %+v", k, s, a, e.texts[s])
		}
		seen[s] = true
		switch m.r.IntN(4) {
		case 0:
			MapDelete(st.texts, st.subS, s)
			delete(e.texts, s)
		case 1:
			for other := range e.texts {
				MapDelete(st.texts, st.subS, other)
				delete(e.texts, other)
				break
			}
		case 2:
			a.Cents++
			MapSet(st.texts, st.subS, s, a)
			e.texts[s] = a
		}
	}
	for s := range e.texts {
		if !seen[s] {
			m.t.Fatalf("key %v: iteration leaves out %q", k, s)
		}
	}
}

// fire takes due timers off, in order.
func (m *modelTest[K]) fire() {
	now := m.r.Int64N(300)
	lastAt, lastHash := int64(-1), uint64(0)
	for {
		t, at, ok := m.st.s.Due(ProcessingTime, now)
		if !ok {
			break
		}
		k, h := m.st.keys.Key(), m.st.s.Hash()
		if at < lastAt || at == lastAt && h < lastHash || at > now || h != m.st.keys.Hash(k) {
			m.t.Fatalf("timer of key %v at %d after %d, now %d", k, at, lastAt, now)
		}
		lastAt, lastHash = at, h
		p := &m.model[k].timer
		if t == m.st.rival {
			p = &m.model[k].rival
		}
		if *p == nil || **p != at {
			m.t.Fatalf("timer %s of key %v fires at %d, model has %v", t.Name(), k, at, *p)
		}
		*p = nil
		m.st.s.EndKey()
	}
	for k, e := range m.model {
		if e.timer != nil && *e.timer <= now || e.rival != nil && *e.rival <= now {
			m.t.Fatalf("timer of key %v did not fire at %d", k, now)
		}
	}
}

// drain fires all timers and deletes every key: nothing may be left.
func (m *modelTest[K]) drain() {
	for {
		if _, _, ok := m.st.s.Due(ProcessingTime, 1<<62); !ok {
			break
		}
	}
	for k := range m.model {
		m.st.take(k)
		for _, t := range m.st.s.Tables() {
			t.Delete()
		}
	}
	m.st.s.reap()
	for _, t := range m.st.s.Tables() {
		if t.Len() != 0 || t.sp.arena.live > 0 && t.decl.Kind == checkpoint.ValueState && t.sp.key.form == inlineKey {
			m.t.Fatalf("state %s: %d entries, %d live bytes after all was deleted", t.Name(), t.Len(), t.sp.arena.live)
		}
	}
	if mem := m.st.s.Memory(); mem.Retired != 0 || mem.Blocks != 0 || mem.Overlays < 0 || mem.Pages < 0 || mem.Pool < 0 {
		m.t.Fatalf("after all was deleted: %+v", mem)
	}
}

func (m *modelTest[K]) snapshot() {
	m.next++
	sn, err := m.st.s.Snapshot(m.next)
	if len(m.live) == 2 {
		if err != ErrBusy {
			m.t.Fatalf("third snapshot: %v", err)
		}
		return
	}
	if err != nil {
		m.t.Fatal(err)
	}
	l := &liveSnapshot[K]{id: m.next, sn: sn, model: map[K]*modelKey{}, gate: make(chan struct{}), done: make(chan error, 1), abort: m.r.IntN(4) == 0}
	for k, e := range m.model {
		l.model[k] = e.clone()
	}
	ctx := context.Background()
	p := testPacker(ctx, m.store, fmt.Sprintf("ckpt-%d", m.next))
	go func() {
		<-l.gate
		var err error
		l.acks, err = sn.Write(ctx, p)
		l.done <- err
	}()
	m.taken++
	if len(m.live) == 1 {
		m.two++
	}
	m.live = append(m.live, l)
	if m.r.IntN(3) > 0 {
		m.open(len(m.live) - 1)
	}
}

// open lets a reader begin.
func (m *modelTest[K]) open(i int) {
	if l := m.live[i]; !l.open {
		l.open = true
		close(l.gate)
	}
}

// finish ends a snapshot and restores it into stores of other ranges.
func (m *modelTest[K]) finish(i int) {
	l := m.live[i]
	m.live = slices.Delete(m.live, i, i+1)
	if l.abort && m.r.IntN(2) == 0 {
		l.sn.Abort()
	}
	m.open2(l)
	if l.abort {
		l.sn.Abort()
	}
	err := <-l.done
	l.sn.Release()
	if l.abort {
		m.aborted++
		if err == nil || err == ErrAborted || strings.Contains(err.Error(), ErrAborted.Error()) {
			return
		}
	}
	if err != nil {
		m.t.Fatal(err)
	}
	m.written++
	if m.r.IntN(3) > 0 {
		m.st.s.Confirm(l.id)
	}
	manifests, objects := manifest(m.st.s, l.acks)
	ranges := keyhash.Split(1 + m.r.IntN(5))
	for _, rng := range ranges {
		st := newStates[K](m.seed, rng, m.full)
		if err := st.s.Restore(context.Background(), m.store, manifests, objects); err != nil {
			m.t.Fatalf("restore %d into %x: %v", l.id, rng, err)
		}
		for i := range m.keys {
			if raceEnabled && i > m.keys/50 && i%8 != int(l.id%8) {
				continue // the race detector looks for races, not for values
			}
			k := m.key(i)
			if rng.Contains(st.keys.Hash(k)) {
				m.compare(fmt.Sprintf("snapshot %d restored", l.id), st, l.model, k)
			}
		}
	}
}

func (m *modelTest[K]) open2(l *liveSnapshot[K]) {
	if !l.open {
		l.open = true
		close(l.gate)
	}
}

func (m *modelTest[K]) compare(when string, st *states[K], model map[K]*modelKey, k K) {
	if !st.s.cfg.Range.Contains(st.keys.Hash(k)) {
		return
	}
	got, want := show(st.read(k)), show(model[k])
	if got != want {
		m.t.Fatalf("%s: key %v:\ngot  %s\nwant %s", when, k, got, want)
	}
}

// manifest is what the coordinator makes of a subtask's acks.
func manifest(s *Store, acks []checkpoint.StateAck) (ms []checkpoint.StateManifest, objects []checkpoint.Object) {
	for _, a := range acks {
		t := s.Table(a.State)
		m := checkpoint.StateManifest{Name: a.State, Kind: t.decl.Kind, TTLFloor: a.TTLFloor, Entries: a.Entries, Bytes: a.Bytes}
		for _, seg := range a.Segments {
			if seg.Base.Object >= 0 {
				seg.Base.Object += len(objects)
			}
			m.Segments = append(m.Segments, seg)
		}
		objects = append(objects, a.Objects...)
		ms = append(ms, m)
	}
	return ms, objects
}

func TestStoreAgreesWithPlainMaps(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	type pair struct {
		A uint32
		B string
	}
	t.Run("uint64", func(t *testing.T) { runModel(t, seed, 4000, 40000, 2, func(i int) uint64 { return uint64(i) }) })
	t.Run("uint64, small pages", func(t *testing.T) { runModel(t, seed+4, 3000, 40000, 0, func(i int) uint64 { return uint64(i) }) })
	t.Run("int32", func(t *testing.T) { runModel(t, seed+1, 400, 30000, 2, func(i int) int32 { return int32(i - 200) }) })
	t.Run("string", func(t *testing.T) {
		runModel(t, seed+2, 1500, 30000, 3, func(i int) string { return fmt.Sprintf("%0*d", i%20, i) })
	})
	t.Run("pair", func(t *testing.T) {
		runModel(t, seed+3, 800, 30000, 2, func(i int) pair { return pair{uint32(i % 7), fmt.Sprint(i)} })
	})
}
