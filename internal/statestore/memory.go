package statestore

import "sync/atomic"

// counters are written by the writer and read by anyone.
type counters struct {
	pages, pool, overlays, retired, ahead, chunks, blocks atomic.Int64
	live                                                  atomic.Int64 // of chunks
}

// Memory is what a store takes, in bytes.
type Memory struct {
	Pages    int64 // in use
	Pool     int64 // pages and overlays waiting for reuse
	Overlays int64 // in use
	Retired  int64 // pages that only snapshots see
	Ahead    int64 // for copies of pages that a snapshot's reader has left
	Chunks   int64 // bytes of strings and encodings, with garbage
	Live     int64 // of Chunks, what is referred to
	Blocks   int64 // of lists
}

// Total is all of it.
func (m Memory) Total() int64 {
	return m.Pages + m.Pool + m.Overlays + m.Retired + m.Ahead + m.Chunks + m.Blocks
}

// Memory may be called from any goroutine.
func (s *Store) Memory() Memory {
	m := &s.mem
	return Memory{
		Pages: m.pages.Load(), Pool: m.pool.Load(), Overlays: m.overlays.Load(), Retired: m.retired.Load(), Ahead: m.ahead.Load(),
		Chunks: m.chunks.Load(), Live: m.live.Load(), Blocks: m.blocks.Load(),
	}
}
