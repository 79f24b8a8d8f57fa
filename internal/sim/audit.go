package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/storage/memstore"
)

// audit follows what happens in the store, whoever does it, in the order of
// effect: nothing that a checkpoint in the log holds is ever deleted, and no
// name is used twice.
type audit struct {
	w           *world
	seen        int // events of the disk
	holds       map[checkpoint.ID][]string
	used        map[string]bool
	rebuilding  bool
	floor       uint64
	disposed    []checkpoint.ID
	uncommitted []checkpoint.ID
	owners      []string          // of takeovers, in the order of the log
	since       int               // records behind the last takeover
	committable checkpoint.ID     // the newest that names committables
	lineage     uint64            // that is continued
	lineageOf   map[string]uint64 // by owner
	branches    map[uint64]branch // by lineage
	pins        map[string]checkpoint.ID
}

// look takes in what has happened since the last time.
func (a *audit) look() {
	events := a.w.disk.HistoryFrom(a.seen)
	if len(events) == 0 {
		return
	}
	if a.holds == nil {
		a.holds = map[checkpoint.ID][]string{}
	}
	if a.used == nil {
		a.used = map[string]bool{}
	}
	a.seen += len(events)
	for _, e := range events {
		switch {
		case e.Verb == memstore.Delete:
			a.check("is deleted", e.Name)
		case strings.HasPrefix(e.Name, "log/"):
			a.record(e.Name)
		case !strings.HasPrefix(e.Name, "probe/"):
			if a.used[e.Name] {
				a.w.fail("object name %s is used twice", e.Name)
			}
			a.used[e.Name] = true
		}
	}
}

// deleting is told of a delete before it happens, if it ever does.
func (a *audit) deleting(p *process, name string) {
	a.check(fmt.Sprintf("is being deleted by %v", p), name)
}

func (a *audit) check(what, name string) {
	for id, names := range a.holds {
		if slices.Contains(names, name) {
			a.w.fail("%s %s, which checkpoint %d holds", name, what, id)
		}
	}
}

// owner is who took the job over last.
func (a *audit) owner() string {
	if len(a.owners) == 0 {
		return ""
	}
	return a.owners[len(a.owners)-1]
}

// entry reads a record of the log, if it is still there.
func (a *audit) entry(name string) (ckptlog.Entry, bool) {
	b, ok := a.w.disk.Content(name)
	if !ok {
		return ckptlog.Entry{}, false
	}
	slot, err := strconv.ParseUint(strings.TrimPrefix(name, "log/"), 10, 64)
	if err != nil {
		a.w.fail("%s: %w", name, err)
		return ckptlog.Entry{}, false
	}
	e, err := ckptlog.Decode(slot, b)
	if err != nil {
		a.w.fail("%s: %w", name, err)
	}
	return e, err == nil
}

// record folds a record of the log.
func (a *audit) record(name string) {
	e, ok := a.entry(name)
	if !ok {
		return
	}
	a.w.tracef("log %d: %v %+v", e.Slot, e.Record.Kind(), e.Record)
	if e.Slot < a.floor {
		return // a create that landed late: no reader looks there any more
	}
	a.since++
	a.pinned(e.Record)
	switch r := e.Record.(type) {
	case ckptlog.Checkpoint:
		if r.Committables {
			a.committable = max(a.committable, r.ID)
		}
		a.retain(r, r.Committables)
	case ckptlog.Committed:
		a.uncommitted = slices.DeleteFunc(a.uncommitted, func(id checkpoint.ID) bool { return id <= r.ID })
	case ckptlog.Dispose:
		for _, id := range r.IDs {
			delete(a.holds, id)
			a.disposed = append(a.disposed, id)
			if slices.Contains(a.uncommitted, id) {
				a.w.fail("checkpoint %d is given up before its sinks have committed", id)
			}
		}
	case ckptlog.Takeover:
		a.owners = append(a.owners, r.Owner)
		a.since = 0
		a.begins(a.lineage)
	case ckptlog.Restore:
		a.branched(e, r)
	case ckptlog.Floor:
		a.floor, a.lineage = e.Slot, r.State.Lineage
		a.holds, a.uncommitted = map[checkpoint.ID][]string{}, nil
		for _, c := range r.State.Checkpoints {
			a.retain(c.Checkpoint, c.Committables && !c.Committed)
		}
		a.w.result.Trims++
	}
}

func (a *audit) retain(r ckptlog.Checkpoint, uncommitted bool) {
	names := []string{r.Manifest.Name}
	m, ok := a.w.disk.Content(r.Manifest.Name)
	if !ok {
		a.holds[r.ID] = names
		if !a.rebuilding {
			a.w.fail("checkpoint %d is in the log, but not its manifest %s", r.ID, r.Manifest.Name)
		}
		return
	}
	manifest, err := checkpoint.DecodeManifest(r.Manifest.Name, m)
	if err != nil {
		a.w.fail("manifest of checkpoint %d: %w", r.ID, err)
		return
	}
	for _, o := range manifest.Objects {
		names = append(names, o.Name)
	}
	a.holds[r.ID] = names
	if uncommitted {
		a.uncommitted = append(a.uncommitted, r.ID)
	}
}

// powerLost begins anew with what is left of the log: its last record may be
// gone.
func (a *audit) powerLost() {
	a.look()
	a.holds, a.uncommitted, a.floor, a.lineage = map[checkpoint.ID][]string{}, nil, 0, 0
	a.rebuilding = true // what is disposed of later may have been deleted
	names := a.w.disk.Names()
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, "log/") })
	from := 0
	for i, name := range names {
		if e, ok := a.entry(name); ok && e.Record.Kind() == ckptlog.KindFloor {
			from = i // below it stands what was deleted and has come back
		}
	}
	for _, name := range names[from:] {
		a.record(name)
	}
	a.rebuilding = false
	for id, names := range a.holds {
		if _, ok := a.w.disk.Content(names[0]); !ok {
			a.w.fail("after a loss of power: checkpoint %d is in the log, but not its manifest %s", id, names[0])
		}
	}
}
