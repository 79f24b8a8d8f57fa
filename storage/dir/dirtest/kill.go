package dirtest

import (
	"slices"

	"github.com/staunchdev/staunch/storage/dir"
)

// Killed returns the Recorder of a process that starts when the one before was
// killed after its first n calls. A kill loses nothing, so under must hold the
// image of those calls with KeepAll; but what the dead process had not synced is
// not durable either, until somebody syncs it.
func (r *Recorder) Killed(n int, under dir.FS) *Recorder {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Recorder{under: under, calls: slices.Clone(r.calls[:n])}
}

// Since is the loss that a process must fear that goes on where another was
// killed after n calls: the unsynced entries that it changed itself are kept,
// and those that only the dead one changed are lost.
func (r *Recorder) Since(n int) Choice {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := since{map[string]bool{}, DropAll}
	for _, call := range r.calls[n:] {
		c.changed[call.name], c.changed[call.to] = true, true
	}
	return c
}

type since struct {
	changed map[string]bool
	Choice
}

func (c since) Entry(name string) bool { return c.changed[name] }

// Unsynced says whether call i changed an entry of a directory: a process that
// is killed right after it leaves a name behind that is seen and not durable.
func (r *Recorder) Unsynced(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch r.calls[i].verb {
	case mkdir, link, rename:
		return true
	}
	return false
}
