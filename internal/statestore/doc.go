// Package statestore is the heap state backend: the keyed state of one operator
// in one subtask, with snapshots that cost the writer no time that grows with
// the state.
//
// A Store holds one Table for each declared state. A table is an extendible
// hash table whose order is hash order: 64 sub-directories point to pages of
// about 2 KiB, a page holds control bytes, keys and values side by side.
// Nothing in pages, overlays and chunks is a pointer to the collector.
//
// One goroutine, the writer, owns a Store. A Snapshot is read by one other
// goroutine, the reader, while the writer goes on. They share memory by these
// rules and without a lock:
//
//  1. Snapshot bumps the version and copies slice headers: the directories, and
//     the lists that ids index (pages of maps, overlays, chunks, blocks).
//  2. A page is pending for a snapshot that holds it until the reader has stored
//     the snapshot's version in the page's mark (page.marks), after its last
//     access to that page. The writer changes a page only if it is pending for
//     no live snapshot. Otherwise it puts new values into the page's overlay,
//     which readers of older versions ignore, or works on a clone.
//  3. What leaves the table while a snapshot may see it is retired: it is used
//     again only when every snapshot of that time has ended.
//  4. Chunks and list blocks are append-only as far as a snapshot knows them;
//     the writer writes behind what the snapshot reads.
//
// The writer never waits for the reader. A reader that is slow, or stops, costs
// memory and nothing else.
//
// Values cannot be aliased: flat values are copied in and out, strings in them
// become references into chunks whose bytes never change, so that Get returns
// an aliasing string without an allocation. All else is stored encoded, and a
// reader copies those bytes: only the writer ever calls a codec.
package statestore
