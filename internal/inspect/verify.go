package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// Verification is what reading a store again found.
type Verification struct {
	Store       string          `json:"store"`
	Job         string          `json:"job"`
	Checkpoints []checkpoint.ID `json:"checkpoints"`
	Objects     []Verified      `json:"objects"`
	Runs        int             `json:"runs"`
	Blocks      int             `json:"blocks"`
	Bytes       int64           `json:"bytes"`
	Faults      int             `json:"faults"`
}

// Verified is what was found of one object.
type Verified struct {
	Object      string          `json:"object"`
	Checkpoints []checkpoint.ID `json:"checkpoints"` // that name it, of those that were asked for
	Runs        int             `json:"runs"`
	Blocks      int             `json:"blocks"`
	Size        int64           `json:"size_bytes"`
	Disposed    bool            `json:"disposed,omitempty"` // the job gave it up while it was being read: no fault
	Faults      []Fault         `json:"faults,omitempty"`
}

// Verify reads again all that the retained checkpoints name, or one of them:
// the log, each manifest, the size and head of each object, and every block of
// every run. each, if set, is told of every object as soon as it was read. What
// is wrong is in the result; the error is for what kept Verify from looking.
func Verify(ctx context.Context, store storage.Store, id checkpoint.ID, each func(Verified)) (*Verification, error) {
	x := &verifier{store: store, result: &Verification{Store: store.String(), Checkpoints: []checkpoint.ID{}}, each: each}
	h, err := readHistory(ctx, store)
	switch {
	case err != nil && kindOf(err) != Damaged:
		return nil, err
	case err != nil:
		f := faultOf("log", err)
		x.add(Verified{Object: f.Object, Faults: []Fault{f}})
		return x.result, nil
	}
	x.result.Job = h.view.Job
	if id != 0 {
		r, ok := h.find(id)
		if !ok {
			return nil, fmt.Errorf("%s: there is no checkpoint %d (kept: %v)", store, id, h.ids())
		}
		h.retained = []retained{r}
	}
	x.result.Checkpoints = h.ids()
	x.collect(h)
	for _, r := range h.retained {
		if err := x.manifest(ctx, r); err != nil {
			return nil, err
		}
	}
	return x.result, nil
}

// verifier reads each object once, however many checkpoints name it.
type verifier struct {
	store   storage.Store
	result  *Verification
	each    func(Verified)
	objects map[string]*named
}

// named is an object and all runs in it that some checkpoint names.
type named struct {
	checkpoint.Object
	by   []checkpoint.ID
	runs []namedRun
	done bool
}

type namedRun struct {
	at  checkpoint.Place
	ref checkpoint.Ref // clips nothing; its Object is 0 unless it is inline
}

// collect finds out which runs lie in which object.
func (x *verifier) collect(h *history) {
	x.objects = map[string]*named{}
	for _, r := range h.retained {
		if r.manifest == nil {
			continue
		}
		for _, o := range r.manifest.Objects {
			if x.objects[o.Name] == nil {
				x.objects[o.Name] = &named{Object: o}
			}
			x.objects[o.Name].by = append(x.objects[o.Name].by, r.ID)
		}
		for at, ref := range r.manifest.Refs() {
			if ref.Object >= 0 {
				x.objects[r.manifest.Objects[ref.Object].Name].add(at, *ref)
			}
		}
	}
}

// add adds a run, once: checkpoints share what did not change, and one may clip
// it to another interval.
func (n *named) add(at checkpoint.Place, ref checkpoint.Ref) {
	ref.Object, ref.Clip = 0, statefile.Everything
	same := func(r namedRun) bool {
		return r.ref.Offset == ref.Offset && r.ref.Length == ref.Length && r.ref.IndexOff == ref.IndexOff && r.ref.IndexCRC == ref.IndexCRC &&
			r.ref.Kind == ref.Kind && r.ref.Blocks == ref.Blocks && r.ref.Entries == ref.Entries && r.ref.Deletes == ref.Deletes
	}
	if !slices.ContainsFunc(n.runs, same) {
		n.runs = append(n.runs, namedRun{at, ref})
	}
}

// manifest reports a manifest with the runs inside it, then the objects that no
// manifest before it named.
func (x *verifier) manifest(ctx context.Context, r retained) error {
	v := Verified{Object: r.Manifest.Name, Checkpoints: []checkpoint.ID{r.ID}, Size: r.Manifest.Size}
	if r.err != nil {
		v.Faults = append(v.Faults, faultOf(r.Manifest.Name, r.err))
		x.add(v)
		return nil
	}
	for at, ref := range r.manifest.Refs() {
		if inline := *ref; inline.Object < 0 {
			inline.Clip = statefile.Everything
			x.run(ctx, &v, nil, namedRun{at, inline})
		}
	}
	x.add(v)
	for _, o := range r.manifest.Objects {
		n := x.objects[o.Name]
		if n.done {
			continue
		}
		n.done = true
		if err := x.object(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func (x *verifier) object(ctx context.Context, n *named) error {
	v := Verified{Object: n.Name, Checkpoints: n.by, Size: n.Size}
	objects := []checkpoint.Object{n.Object}
	err := statefile.VerifyObject(ctx, x.store, n.Object)
	if err != nil {
		v.Faults = append(v.Faults, faultOf(n.Name, err))
	}
	if err == nil || kindOf(err) == Damaged { // what is not there need not be tried run by run
		for _, r := range n.runs {
			x.run(ctx, &v, objects, r)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if slices.ContainsFunc(v.Faults, func(f Fault) bool { return f.Kind == Missing }) {
		gone, err := x.disposed(ctx, n.by)
		if err != nil {
			return err
		}
		if gone {
			v.Disposed, v.Faults = true, nil
		}
	}
	x.add(v)
	return nil
}

// disposed says whether the log no longer names any of the checkpoints.
func (x *verifier) disposed(ctx context.Context, ids []checkpoint.ID) (bool, error) {
	view, err := ckptlog.Read(ctx, x.store)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(ids, func(id checkpoint.ID) bool {
		_, there := view.ByID(id)
		return there
	}), nil
}

// run reads a run. The quick way stops at the first damage; then every block is
// looked at by itself, so that all that is damaged is named.
func (x *verifier) run(ctx context.Context, v *Verified, objects []checkpoint.Object, r namedRun) {
	v.Runs++
	v.Blocks += r.ref.Blocks
	run, err := statefile.OpenRun(ctx, x.store, r.ref, objects)
	if err == nil {
		err = run.All(ctx, statefile.Everything, nil, func(statefile.Entry) error { return nil })
	}
	if err == nil {
		return
	}
	found := []Fault{faultOf(v.Object, err)}
	if found[0].Block != nil {
		found = x.blocks(ctx, v.Object, run, found)
	}
	for _, f := range found {
		f.Run = r.at.String()
		if !slices.ContainsFunc(v.Faults, f.same) {
			v.Faults = append(v.Faults, f)
		}
	}
}

// blocks adds what is wrong with the blocks of a run to what is known.
func (x *verifier) blocks(ctx context.Context, object string, run *statefile.Run, known []Fault) []Fault {
	for i := range run.Blocks() {
		_, err := run.ReadBlock(ctx, i)
		if err == nil || errors.Is(err, context.Canceled) {
			continue
		}
		if f := faultOf(object, err); !slices.ContainsFunc(known, f.same) {
			known = append(known, f)
		}
	}
	return known
}

// same says whether two faults are of the same place: damage to the head of an
// object is found again by each of its runs.
func (f Fault) same(o Fault) bool {
	return f.Kind == o.Kind && f.Object == o.Object && f.Offset == o.Offset && f.What == o.What
}

func (x *verifier) add(v Verified) {
	r := x.result
	r.Objects = append(r.Objects, v)
	r.Runs += v.Runs
	r.Blocks += v.Blocks
	r.Bytes += v.Size
	r.Faults += len(v.Faults)
	if x.each != nil {
		x.each(v)
	}
}
