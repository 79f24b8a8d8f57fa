package cluster

import (
	"context"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
)

// manifestObjects is everything in the store that one checkpoint holds.
type manifestObjects struct {
	manifest string
	objects  []string
}

func (m manifestObjects) names() []string { return append([]string{m.manifest}, m.objects...) }

// dispose gives checkpoints up by a record, and then deletes what only they
// held. From the record on they can be neither restored nor pinned.
func (x *Execution) dispose(ids []checkpoint.ID) {
	x.appendRecord(ckptlog.Dispose{IDs: ids}, func(err error) {
		if err != nil {
			x.warn(x.ctx, "checkpoints are kept", err, "ids", ids)
			return
		}
		held := map[string]bool{}
		for _, r := range x.view.Retained() {
			for _, name := range x.objects[r.ID].names() {
				held[name] = true
			}
		}
		var names []string
		for _, id := range ids {
			for _, name := range x.objects[id].names() {
				if name != "" && !held[name] {
					names = append(names, name)
				}
			}
			delete(x.objects, id)
		}
		x.deleteObjects(names)
	})
}

// deleteObjects deletes off the checkpoint's way. What cannot be deleted is
// left to the next collection; it does not keep the others.
func (x *Execution) deleteObjects(names []string) {
	if len(names) == 0 {
		return
	}
	remove := func(ctx context.Context) error {
		var first error
		for _, name := range names {
			if err := x.opt.Store.Delete(ctx, name); err != nil && first == nil {
				first = fmt.Errorf("delete %s: %w", name, err)
			}
		}
		return first
	}
	told := func(ctx context.Context) func(error) {
		return func(err error) {
			if err != nil && !x.finished {
				x.littered = true
				x.warn(ctx, "some objects of disposed checkpoints could not be deleted; a later collection tries again", err)
			}
		}
	}
	if x.att != nil {
		x.inAttempt(x.att, "delete objects", remove, told(x.att.ctx))
	} else {
		x.async("delete objects", remove, told(x.ctx))
	}
}

// collectGarbage deletes what crashes and aborted checkpoints left behind: at the
// beginning of an attempt, and when a checkpoint has ended of which something
// may be left. It is in nobody's way: objects are listed, then ownership is
// proved by the log, and only then is anything deleted. What a manifest that
// cannot be read holds is unknown, so then nothing is deleted.
func (x *Execution) collectGarbage(a *attempt) {
	if a.collecting {
		a.littered = true // once more when this one is done
		return
	}
	a.collecting, a.littered = true, false
	// What has ended by now is held by a retained checkpoint, which the view of
	// readHeld has, or by nobody. What ends later may be in neither.
	next, pending := a.coord.NextID(), a.coord.Pending()
	decided := func(id checkpoint.ID) bool { return id < next && !slices.Contains(pending, id) }
	var listing []string
	x.inAttempt(a, "list objects", func(ctx context.Context) (err error) {
		listing, err = x.listObjects(ctx)
		return err
	}, func(err error) {
		if err != nil {
			a.collecting, a.littered = false, true
			x.warn(a.ctx, "left-over objects are not collected", err)
			return
		}
		x.logCall("prove ownership of", (*ckptlog.Log).Owned, func(err error) {
			if err != nil || x.att != a {
				a.collecting, a.littered = false, true
				x.littered = x.littered || x.att != a // the next attempt sees to it
				return
			}
			x.readHeld(a, listing, decided)
		})
	})
}

func (x *Execution) listObjects(ctx context.Context) (names []string, err error) {
	for _, prefix := range []string{checkpoint.ObjectPrefix, checkpoint.ManifestPrefix} {
		infos, err := x.opt.Store.List(ctx, prefix)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		for _, i := range infos {
			names = append(names, i.Name)
		}
	}
	return names, nil
}

// collectLast deletes what the failed checkpoints of a job left behind that is
// given up: nobody may start it again soon. Nothing of the attempt runs any
// more. The order is that of collectGarbage; then is called whatever comes of it.
func (x *Execution) collectLast(a *attempt, then func()) {
	if !a.littered {
		then()
		return
	}
	var listing []string
	x.async("list objects", func(ctx context.Context) (err error) {
		listing, err = x.listObjects(ctx)
		return err
	}, func(err error) {
		if err != nil || x.finished {
			then()
			return
		}
		x.logCall("prove ownership of", (*ckptlog.Log).Owned, func(err error) {
			if err != nil {
				then()
				return
			}
			retained := x.view.Retained()
			x.async("delete objects", func(ctx context.Context) error {
				held := map[string]bool{}
				for _, r := range retained {
					m, err := ReadManifest(ctx, x.opt.Store, r)
					if err != nil {
						return err // what it holds is unknown, so nothing is deleted
					}
					for _, name := range objectsOf(r.Manifest.Name, m).names() {
						held[name] = true
					}
				}
				ended := checkpoint.Epoch{Generation: a.epoch.Generation, Attempt: a.epoch.Attempt + 1}
				for _, d := range checkpoint.Garbage(listing, checkpoint.GarbageView{Epoch: ended, Held: held}) {
					if err := x.opt.Store.Delete(ctx, d.Name); err != nil {
						return err
					}
				}
				return nil
			}, func(err error) {
				if err != nil {
					x.warn(x.ctx, "left-over objects of failed checkpoints are left to the next start", err)
				}
				then()
			})
		})
	})
}

// readHeld finds out what every retained checkpoint holds, and deletes the rest.
func (x *Execution) readHeld(a *attempt, listing []string, decided func(checkpoint.ID) bool) {
	found := map[checkpoint.ID]manifestObjects{}
	var missing []ckptlog.Retained
	for _, r := range x.view.Retained() {
		if o, ok := x.objects[r.ID]; ok {
			found[r.ID] = o
		} else {
			missing = append(missing, r)
		}
	}
	x.inAttempt(a, "read retained manifests", func(ctx context.Context) error {
		for _, r := range missing {
			m, err := ReadManifest(ctx, x.opt.Store, r)
			if err != nil {
				return err
			}
			found[r.ID] = objectsOf(r.Manifest.Name, m)
		}
		return nil
	}, func(err error) {
		a.collecting = false
		if err != nil {
			a.littered = true
			x.warn(a.ctx, "left-over objects are not collected: a retained checkpoint cannot be read", err)
			return
		}
		held := map[string]bool{}
		for id, o := range found {
			if _, retained := x.view.ByID(id); retained {
				x.objects[id] = o
			}
			for _, name := range o.names() {
				held[name] = true
			}
		}
		var names []string
		for _, d := range checkpoint.Garbage(listing, checkpoint.GarbageView{
			Epoch: a.epoch, Held: held, Decided: decided,
		}) {
			names = append(names, d.Name)
		}
		x.deleteObjects(names)
	})
}
