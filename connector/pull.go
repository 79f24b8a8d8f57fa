package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"
)

// Pull makes a Source of blocking code. Each split is read on a goroutine of
// its own.
type Pull[T any] struct {
	Describe SourceSpec
	// Splits lists the splits. It is called once in each attempt; those that an
	// earlier one returned are not read anew.
	Splits func(ctx context.Context) ([]Split, error)
	// Read reads s from s.Next until its end, or until emit fails. It returns nil
	// at the end of the split, and soon after ctx is done. next is where to read
	// after v; its State must not be changed after the call. emit blocks under
	// backpressure.
	Read func(ctx context.Context, s Split, emit func(v T, next Offset) error) error
}

// Spec implements Source.
func (p Pull[T]) Spec() SourceSpec { return p.Describe }

// Enumerator implements Source.
func (p Pull[T]) Enumerator(context.Context, Instance) (Enumerator, error) {
	if p.Splits == nil || p.Read == nil {
		return nil, errors.New("connector: Pull needs Splits and Read")
	}
	return &pullEnumerator{splits: p.Splits}, nil
}

// Reader implements Source. The goroutines end with Close and not with ctx,
// which may be that of opening the reader only.
func (p Pull[T]) Reader(ctx context.Context, _ Instance) (Reader[T], error) {
	if p.Splits == nil || p.Read == nil {
		return nil, errors.New("connector: Pull needs Splits and Read")
	}
	r := &pullReader[T]{read: p.Read, ready: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return r, nil
}

// pullEnumerator remembers the ids it returned.
type pullEnumerator struct {
	splits func(context.Context) ([]Split, error)
	known  []string
}

func (e *pullEnumerator) Discover(ctx context.Context) ([]Split, bool, error) {
	all, err := e.splits(ctx)
	if err != nil {
		return nil, true, fmt.Errorf("list splits: %w", err)
	}
	var found []Split
	for _, s := range all {
		if !slices.Contains(e.known, s.ID) {
			found = append(found, s)
			e.known = append(e.known, s.ID)
		}
	}
	return found, false, nil
}

func (e *pullEnumerator) Snapshot() ([]byte, error) { return cbor.Marshal(e.known) }

func (e *pullEnumerator) Restore(b []byte) error {
	e.known = nil
	if len(b) == 0 {
		return nil
	}
	return cbor.Unmarshal(b, &e.known)
}

func (e *pullEnumerator) Close() error { return nil }
