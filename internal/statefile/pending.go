package statefile

import (
	"context"
	"errors"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Pending is a finished run that may not be durable yet.
type Pending struct {
	p   *packing
	o   *object // nil: inline
	ref checkpoint.Ref
}

// WaitDurable returns the run's reference and its object once the run is
// durable. Ref.Object is 0, for the one object that is returned, or -1 for an
// inline run, which comes without an object.
func (r *Pending) WaitDurable(ctx context.Context) (checkpoint.Ref, []checkpoint.Object, error) {
	if r.o == nil {
		return r.ref, nil, nil
	}
	if r.p.o.SealAfter <= 0 {
		if err := r.p.sealNow(r.o); err != nil {
			return checkpoint.Ref{}, nil, err
		}
	}
	select {
	case <-r.o.sealed:
	case <-ctx.Done():
		return checkpoint.Ref{}, nil, ctx.Err()
	}
	if r.o.err != nil {
		return checkpoint.Ref{}, nil, r.o.err
	}
	return r.ref, []checkpoint.Object{r.o.handle()}, nil
}

// sealNow seals an idle object on the goroutine of the caller.
func (p *packing) sealNow(o *object) error {
	p.mu.Lock()
	switch o.state {
	case busy:
		p.mu.Unlock()
		return errors.New("statefile: wait for a run while another one is written by the same handle, without a timer that would seal their object")
	case idle:
		p.beginSeal(o)
		p.mu.Unlock()
		return p.seal(o)
	}
	p.mu.Unlock()
	return nil
}

// Collect waits for all runs and returns their references in the same order,
// with the objects that they index into, each once.
func Collect(ctx context.Context, runs ...*Pending) ([]checkpoint.Ref, []checkpoint.Object, error) {
	var objects []checkpoint.Object
	refs := make([]checkpoint.Ref, len(runs))
	index := map[*object]int{}
	for i, r := range runs {
		ref, object, err := r.WaitDurable(ctx)
		if err != nil {
			return nil, nil, err
		}
		if r.o != nil {
			n, ok := index[r.o]
			if !ok {
				n = len(objects)
				index[r.o] = n
				objects = append(objects, object...)
			}
			ref.Object = n
		}
		refs[i] = ref
	}
	return refs, objects, nil
}
