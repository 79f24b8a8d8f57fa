package statefile

import (
	"context"
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// CheckObjects checks that every object is there with the size that its manifest
// says, without reading it: what a restore does before the first record.
func CheckObjects(ctx context.Context, store storage.Store, objects []checkpoint.Object) error {
	for _, o := range objects {
		if err := checkSize(ctx, store, o); err != nil {
			return err
		}
	}
	return nil
}

// VerifyObject checks the size and the header of an object, which no run needs.
func VerifyObject(ctx context.Context, store storage.Store, o checkpoint.Object) error {
	if err := checkSize(ctx, store, o); err != nil {
		return err
	}
	at := place{object: o.Name, block: -1}
	if o.Size < objectHeaderSize {
		return at.corrupt("size of the object", fmt.Sprintf("at least %d bytes", objectHeaderSize), fmt.Sprintf("%d bytes", o.Size))
	}
	b, err := readObject(ctx, store, o, 0, objectHeaderSize)
	if err != nil {
		return err
	}
	return checkObjectHeader(at, b, o.ID)
}

// Verify reads all of a run again, whatever its reference clips: the object, the
// index, each block, and the counts.
func Verify(ctx context.Context, store storage.Store, ref checkpoint.Ref, objects []checkpoint.Object) error {
	if ref.Object >= 0 && ref.Object < len(objects) {
		if err := VerifyObject(ctx, store, objects[ref.Object]); err != nil {
			return err
		}
	}
	ref.Clip = Everything
	r, err := OpenRun(ctx, store, ref, objects)
	if err != nil {
		return err
	}
	return r.All(ctx, Everything, nil, func(Entry) error { return nil })
}
