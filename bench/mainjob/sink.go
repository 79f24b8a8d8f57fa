package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
)

// sink discards what it is given and counts it. It is the end of the engine's
// job and of the loop written by hand.
type sink[K comparable] struct {
	n    atomic.Int64
	last atomic.Int64 // Unix nanoseconds of the last Write
	gap  atomic.Int64 // the longest time between two of them
}

func (s *sink[K]) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.AtLeastOnce, System: "nowhere"}
}

func (s *sink[K]) Writer(context.Context, connector.Instance) (connector.Writer[staunch.KV[K, int64]], error) {
	return writer[K]{s}, nil
}

type writer[K comparable] struct{ s *sink[K] }

func (w writer[K]) Write(_ context.Context, b connector.Batch[staunch.KV[K, int64]]) error {
	w.s.n.Add(int64(len(b.Values)))
	now := time.Now().UnixNano()
	if last := w.s.last.Swap(now); last != 0 && now-last > w.s.gap.Load() {
		w.s.gap.Store(now - last)
	}
	return nil
}

func (w writer[K]) Prepare(context.Context, connector.CheckpointID) ([]connector.Committable, error) {
	return nil, nil
}

func (w writer[K]) Close() error { return nil }

// forget begins a new measurement of the longest time without a Write.
func (s *sink[K]) forget() {
	s.last.Store(time.Now().UnixNano())
	s.gap.Store(0)
}

// stalled is that time, the one in progress included.
func (s *sink[K]) stalled() time.Duration {
	return time.Duration(max(s.gap.Load(), time.Now().UnixNano()-s.last.Load()))
}
