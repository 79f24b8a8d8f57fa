package memstore

import (
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/staunchdev/staunch/storage"
)

// Disk is what survives: the objects that the Stores opened on it share.
type Disk struct {
	mu       sync.Mutex
	boot     int // grows with each Crash; handles of an older boot are dead
	objects  map[string]object
	deleted  map[string][]byte // what a crash may bring back
	inFlight []landing
	unsynced int // objects not synced, so that a create need not look for them
	history  []Event
}

// object is a visible object. It is never changed in place.
type object struct {
	content []byte
	synced  bool // survives a crash for certain
}

// landing is a create or delete that was sent and has not arrived.
type landing struct {
	verb    Verb
	name    string
	content []byte
	after   int // calls to come before it lands; 0: by Land only
}

// Event is something that happened to an object, in the order of effect.
type Event struct {
	Verb Verb // Create (also for a Writer's Commit) or Delete
	Name string
	Size int64
}

// NewDisk returns an empty disk.
func NewDisk() *Disk {
	return &Disk{objects: map[string]object{}, deleted: map[string][]byte{}}
}

// Open returns a new handle. Handles share the content; each has its own hooks,
// as rival processes have their own luck.
func (d *Disk) Open() *Store {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Store{disk: d, boot: d.boot}
}

// Loss is a question that a crash asks.
type Loss uint8

const (
	// Unlanded asks whether an operation in flight lands before the crash.
	Unlanded Loss = iota + 1
	// Unlinked asks whether an object that was visible but not durable is kept.
	Unlinked
	// Undeleted asks whether a deleted object is back.
	Undeleted
)

// Crash is a loss of power: writers that did not commit vanish, and what was
// not durable is decided by choose, asked in a fixed order (by age, then by
// name). A nil choose answers no. All handles are dead; Open makes new ones.
func (d *Disk) Crash(choose func(Loss, string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if choose == nil {
		choose = func(Loss, string) bool { return false }
	}
	d.boot++
	for _, l := range d.inFlight {
		if choose(Unlanded, l.name) {
			d.land(l)
		}
	}
	d.inFlight = nil
	for _, name := range slices.Sorted(maps.Keys(d.objects)) {
		if o := d.objects[name]; !o.synced {
			if !choose(Unlinked, name) {
				delete(d.objects, name)
				continue
			}
			o.synced = true
			d.objects[name] = o
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.deleted)) {
		if _, there := d.objects[name]; !there && choose(Undeleted, name) {
			d.objects[name] = object{d.deleted[name], true}
		}
	}
	clear(d.deleted)
	d.unsynced = 0
}

// Clone returns a disk with the same content and nothing in flight. Later
// changes of either are not seen by the other.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &Disk{
		objects: maps.Clone(d.objects), deleted: maps.Clone(d.deleted), unsynced: d.unsynced, history: slices.Clone(d.history),
	}
}

// Land lets the oldest operation in flight arrive and says whether there was one.
func (d *Disk) Land() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.inFlight) == 0 {
		return false
	}
	l := d.inFlight[0]
	d.inFlight = slices.Delete(d.inFlight, 0, 1)
	d.land(l)
	return true
}

// InFlight counts the operations that have not arrived.
func (d *Disk) InFlight() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.inFlight)
}

// History returns all that ever happened to objects, in order of effect: a name
// created twice, or one left behind, is found in it.
func (d *Disk) History() []Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.history)
}

// HistoryFrom returns what happened after the first n events.
func (d *Disk) HistoryFrom(n int) []Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.history[n:])
}

// Names returns the names of the objects that are there, ascending.
func (d *Disk) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.objects))
}

// Replace changes the content of an object behind the store's back, as a decaying
// disk does; nil removes it.
func (d *Disk) Replace(name string, content []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if content == nil {
		delete(d.objects, name)
		return
	}
	d.objects[name] = object{slices.Clone(content), true}
}

// Content returns an object's bytes, past all hooks.
func (d *Disk) Content(name string) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok := d.objects[name]
	return slices.Clone(o.content), ok
}

// tick counts one call and lands what is due before it. d.mu is held.
func (d *Disk) tick() {
	if len(d.inFlight) == 0 {
		return
	}
	var due, later []landing
	for _, l := range d.inFlight {
		switch l.after {
		case 0:
			later = append(later, l)
		case 1:
			due = append(due, l)
		default:
			l.after--
			later = append(later, l)
		}
	}
	d.inFlight = later
	for _, l := range due {
		d.land(l)
	}
}

// land carries out an operation that was in flight. A create that finds its
// name taken changes nothing. d.mu is held.
func (d *Disk) land(l landing) {
	if l.verb == Delete {
		d.remove(l.name)
		return
	}
	d.put(l.name, l.content, true)
}

// put makes an object visible; false if the name is taken. A durable one makes
// its directory durable, deletes included. d.mu is held.
func (d *Disk) put(name string, content []byte, synced bool) bool {
	if _, taken := d.objects[name]; taken {
		return false
	}
	d.objects[name] = object{content, synced}
	if !synced {
		d.unsynced++
	}
	d.history = append(d.history, Event{Create, name, int64(len(content))})
	if synced && d.unsynced > 0 {
		d.sync(path.Dir(name))
	}
	return true
}

func (d *Disk) sync(dir string) {
	for name, o := range d.objects {
		if !o.synced && path.Dir(name) == dir {
			o.synced = true
			d.objects[name] = o
			d.unsynced--
		}
	}
}

func (d *Disk) remove(name string) {
	o, there := d.objects[name]
	if !there {
		return
	}
	delete(d.objects, name)
	if !o.synced {
		d.unsynced--
	}
	d.deleted[name] = o.content
	d.history = append(d.history, Event{Delete, name, int64(len(o.content))})
}

func (d *Disk) list(prefix string) []storage.Info {
	var infos []storage.Info
	for name, o := range d.objects {
		if strings.HasPrefix(name, prefix) {
			infos = append(infos, storage.Info{Name: name, Size: int64(len(o.content))})
		}
	}
	slices.SortFunc(infos, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos
}
