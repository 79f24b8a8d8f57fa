package statestore

import (
	"errors"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/keyhash"
)

// Config is what a Store is made for.
type Config struct {
	Range checkpoint.HashRange // the keys of this subtask
	Seed  uint64               // of the key hash
	Key   KeyType              // of the operator
	// Now is processing time in Unix nanoseconds. Snapshot and accesses of
	// states with a TTL call it, on the writer's goroutine.
	Now func() int64
}

// Decl declares a state.
type Decl struct {
	Name string
	Kind checkpoint.StateKind
	// Value describes values, or the elements of a list; not for timers.
	Value ValueType
	// Sub describes the keys of a map state.
	Sub KeyType
	// TTL is how long an entry lives after its last write: of a list, the last
	// write to the list. It is kept in whole seconds: an entry lives up to a
	// second longer. 0: for ever.
	TTL time.Duration
	// Former are names under which older checkpoints hold the state.
	Former []string
	// Domain keeps timers of processing time and of event time apart.
	Domain TimeDomain
	// What manifests keep of the types.
	ValueSchema, SubSchema *codec.Schema
	// Err is a fault that was found while the declaration was made.
	Err error
}

// TimeDomain is the clock of a timer.
type TimeDomain uint8

const (
	ProcessingTime TimeDomain = iota
	EventTime
	domains
)

// Store is the keyed state of one operator in one subtask. All methods are for
// the goroutine that owns the subtask, unless they say otherwise.
type Store struct {
	cfg    Config
	tables []*Table

	// version counts snapshots: what is written now belongs to this version.
	version uint32
	live    [2]*Snapshot // snapshots whose readers may still read, by slot
	taken   []takenSnapshot
	// confirmed is the version of the last snapshot known to be in a complete
	// checkpoint.
	confirmed uint32
	retired   retireQueue

	// seq counts keys taken in hand: a table remembers where it found the key of
	// seq, so that Get and then Set is one look-up.
	seq   uint64
	keyed bool
	key   key
	buf   []byte // scratch for encodings

	// minCompact is how many bytes of chunks are not worth a pass over a table.
	minCompact int64
	sink       uint64 // keeps the loads of Prefetch

	mem counters
}

type takenSnapshot struct {
	id      uint64
	version uint32
}

// New returns an empty store.
func New(cfg Config) *Store {
	if cfg.Now == nil {
		cfg.Now = func() int64 { return time.Now().UnixNano() }
	}
	return &Store{cfg: cfg, version: 1, seq: 1, minCompact: 1 << 20}
}

// Declare adds a state. States may be declared while snapshots are written:
// those do not have it.
func (s *Store) Declare(d Decl) (*Table, error) {
	if d.Name == "" {
		return nil, errors.New("a state needs a name")
	}
	if t := s.Table(d.Name); t != nil {
		return nil, fmt.Errorf("state %q is declared twice", d.Name)
	}
	if d.Err != nil {
		return nil, fmt.Errorf("state %q: %w", d.Name, d.Err)
	}
	if d.TTL < 0 || d.TTL > 0 && d.TTL < time.Millisecond {
		return nil, fmt.Errorf("state %q: a TTL of %v", d.Name, d.TTL)
	}
	t, err := newTable(s, d)
	if err != nil {
		return nil, fmt.Errorf("state %q: %w", d.Name, err)
	}
	s.tables = append(s.tables, t)
	return t, nil
}

// Table returns a declared state, or nil.
func (s *Store) Table(name string) *Table {
	for _, t := range s.tables {
		if t.decl.Name == name {
			return t
		}
	}
	return nil
}

// Tables returns the declared states in the order of declaration.
func (s *Store) Tables() []*Table { return s.tables }

// EndKey says that no key is in hand any more: a state access panics until the
// next one is. It does some of the background work too.
func (s *Store) EndKey() {
	s.keyed = false
	s.seq++
	for _, t := range s.tables {
		t.show()
	}
	s.reapSome(reapSlice)
	s.sweepSome()
}

// Hash returns the hash of the key in hand.
func (s *Store) Hash() uint64 { return s.key.hash }

// describeKey names the key in hand in messages.
func (s *Store) describeKey() string {
	if s.cfg.Key.form == stringKey {
		return fmt.Sprintf("%.64q", s.key.enc)
	}
	return fmt.Sprintf("%.64x (hash %016x)", s.key.enc, s.key.hash)
}

// Keyer takes keys in hand.
type Keyer[K comparable] struct {
	s     *Store
	keyer keyer[K]
	hash  keyhash.Func[K]
	all   func(dst []uint64, keys []K)
}

// KeyerOf returns the Keyer of a store whose keys are of type K.
func KeyerOf[K comparable](s *Store) (*Keyer[K], error) {
	kr, err := newKeyer[K]()
	if err != nil {
		return nil, err
	}
	if kr.typ.name != s.cfg.Key.name {
		return nil, fmt.Errorf("keys of type %s in a store for %s", kr.typ.name, s.cfg.Key.name)
	}
	hash, err := keyhash.For[K](s.cfg.Seed)
	if err != nil {
		return nil, err
	}
	all, err := keyhash.All[K](s.cfg.Seed)
	return &Keyer[K]{s: s, keyer: kr, hash: hash, all: all}, err
}

// Hash hashes k with the job's seed.
func (kr *Keyer[K]) Hash(k K) uint64 { return kr.hash(k) }

// HashAll hashes keys to dst, which is as long.
func (kr *Keyer[K]) HashAll(dst []uint64, keys []K) { kr.all(dst, keys) }

// Set takes k in hand, whose hash the caller has. A string key must stay
// unchanged until another one is taken.
func (kr *Keyer[K]) Set(k K, hash uint64) {
	s := kr.s
	s.seq++
	s.keyed = true
	kr.keyer.set(&s.key, k, hash)
}

// Key returns the key in hand, for a timer that fires. A string key aliases the
// store's memory, which never changes.
func (kr *Keyer[K]) Key() K {
	k := &kr.s.key
	return decodeKey[K](kr.keyer.typ.form, kr.keyer.layout, k.enc)
}

func (s *Store) mul() uint64 { return keyhash.Mul(s.cfg.Range) }

// snapshotLive says whether a reader may still be reading.
func (s *Store) snapshotLive() bool {
	for _, sn := range s.live {
		if sn != nil && !sn.released.Load() {
			return true
		}
	}
	return false
}

// pending says whether a snapshot holds the page and its reader has not left
// it. A page that was writable in a version after a snapshot is not held by
// it, or its reader had left the page by then.
func (s *Store) pending(p *page) bool {
	for i, sn := range s.live {
		if sn == nil || p.own > sn.version || p.marks[i].Load() == sn.version {
			continue
		}
		if !sn.released.Load() {
			return true
		}
	}
	return false
}

// Confirm says that the checkpoint is complete: what its snapshot held need not
// be written again by an increment.
func (s *Store) Confirm(id uint64) {
	for i, t := range s.taken {
		if t.id == id {
			s.confirmed = max(s.confirmed, t.version)
			s.taken = append(s.taken[:0], s.taken[i+1:]...)
			return
		}
	}
}
