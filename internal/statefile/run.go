package statefile

import (
	"context"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// Run is a run whose index was read and checked.
type Run struct {
	ref    checkpoint.Ref
	src    source
	blocks []BlockInfo
}

// Hash computes the hash of a key as a run has it.
type Hash func(key []byte) uint64

// OpenRun reads the index of a run by one ranged read. Objects is what ref
// indexes into.
func OpenRun(ctx context.Context, store storage.Store, ref checkpoint.Ref, objects []checkpoint.Object) (*Run, error) {
	src, err := newSource(store, ref, objects)
	if err != nil {
		return nil, err
	}
	at := src.place(ref.IndexOff, -1)
	tail := int64(ref.Blocks)*indexEntrySize + trailerSize
	if ref.Blocks < 0 || ref.IndexOff < 0 || ref.IndexOff+tail != ref.Length {
		return nil, at.corrupt("length of the run in its reference", ref.IndexOff+tail, ref.Length)
	}
	b, err := src.read(ctx, ref.IndexOff, tail)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	index, trailer := b[:len(b)-trailerSize], b[len(b)-trailerSize:]
	if sum := crc32.Checksum(index, castagnoli); sum != ref.IndexCRC {
		return nil, at.corrupt("checksum of the index", crc(ref.IndexCRC), crc(sum))
	}
	if want := appendTrailer(nil, &ref); string(want) != string(trailer) {
		return nil, src.place(ref.Length-trailerSize, -1).corrupt("trailer of the run",
			fmt.Sprintf("%x", want), fmt.Sprintf("%x", trailer))
	}
	r := &Run{ref: ref, src: src, blocks: make([]BlockInfo, 0, ref.Blocks)}
	for ; len(index) > 0; index = index[indexEntrySize:] {
		r.blocks = append(r.blocks, parseBlockInfo(index))
	}
	return r, r.checkIndex(at)
}

// checkIndex checks that the blocks fill the run in order: without a gap in the
// object and without overlap in their hashes.
func (r *Run) checkIndex(at place) error {
	var next, entries int64
	var last uint64
	for i, b := range r.blocks {
		switch {
		case b.Offset != next:
			return at.corrupt(fmt.Sprintf("offset of block %d in the index", i), next, b.Offset)
		case b.Entries == 0:
			return at.corrupt(fmt.Sprintf("entries of block %d in the index", i), "at least one", 0)
		case b.Range.Lo > b.Range.Hi || i > 0 && b.Range.Lo < last:
			return at.corrupt(fmt.Sprintf("hashes of block %d in the index", i), "ascending", span{b.Range.Lo, b.Range.Hi})
		case r.ref.Kind == checkpoint.TableRun && (b.Range.Lo != uint64(entries) || b.Range.Hi != uint64(entries)+uint64(b.Entries)-1):
			return at.corrupt(fmt.Sprintf("numbers of the entries of block %d in the index", i), entries, span{b.Range.Lo, b.Range.Hi})
		}
		next += b.size()
		entries += int64(b.Entries)
		last = b.Range.Hi
	}
	if next != r.ref.IndexOff {
		return at.corrupt("length of the blocks in the index", r.ref.IndexOff, next)
	}
	if entries != r.ref.Entries {
		return at.corrupt("entries in the index", r.ref.Entries, entries)
	}
	return nil
}

// Ref is the reference that was opened.
func (r *Run) Ref() checkpoint.Ref { return r.ref }

// Blocks is the index. It must not be changed.
func (r *Run) Blocks() []BlockInfo { return r.blocks }

// ReadBlock reads and checks block i.
func (r *Run) ReadBlock(ctx context.Context, i int) (*Block, error) {
	b, err := r.src.read(ctx, r.blocks[i].Offset, r.blocks[i].size())
	if err != nil {
		return nil, fmt.Errorf("read block %d: %w", i, err)
	}
	return r.decode(i, b)
}

func (r *Run) decode(i int, b []byte) (*Block, error) {
	return decodeBlock(r.src.place(r.blocks[i].Offset, i), r.src.id, r.ref.Kind, r.blocks[i], b)
}

// readAhead is how much All reads at once.
const readAhead = 4 << 20

// All calls f for each entry whose hash lies in clip and in the reference's own
// clip, in the order of the run, until f returns an error. Entries have their
// hash set if a hash function is given; that may be nil if no block straddles
// the border of the clip (and always for a TableRun). Entries may be kept.
//
// When nothing is clipped the entries and tombstones are counted: fewer or more
// than the reference says is damage.
func (r *Run) All(ctx context.Context, clip checkpoint.HashRange, hash Hash, f func(Entry) error) error {
	clip.Lo, clip.Hi = max(clip.Lo, r.ref.Clip.Lo), min(clip.Hi, r.ref.Clip.Hi)
	if clip.Lo > clip.Hi {
		return nil
	}
	var entries, deletes int64
	err := r.eachBlock(ctx, clip, func(i int, b *Block) error {
		entries += int64(b.Len())
		deletes += int64(b.Deletes())
		if r.ref.Kind == checkpoint.TableRun {
			return b.each(clip, f)
		}
		return b.eachHashed(r.src.place(b.Info.Offset, i), clip, hash, f)
	})
	if err != nil {
		return err
	}
	if n := len(r.blocks); n > 0 && (clip.Lo > r.blocks[0].Range.Lo || clip.Hi < r.blocks[n-1].Range.Hi) {
		return nil
	}
	if entries != r.ref.Entries {
		return r.src.place(0, -1).corrupt("entries of the run", r.ref.Entries, entries)
	}
	if deletes != r.ref.Deletes {
		return r.src.place(0, -1).corrupt("tombstones of the run", r.ref.Deletes, deletes)
	}
	return nil
}

// eachBlock reads the blocks that overlap clip. They lie one behind the other,
// so several come by one read.
func (r *Run) eachBlock(ctx context.Context, clip checkpoint.HashRange, f func(int, *Block) error) error {
	i := 0
	for i < len(r.blocks) && r.blocks[i].Range.Hi < clip.Lo {
		i++
	}
	for i < len(r.blocks) && r.blocks[i].Range.Lo <= clip.Hi {
		off, n, end := r.blocks[i].Offset, int64(0), i
		for end < len(r.blocks) && r.blocks[end].Range.Lo <= clip.Hi && (n == 0 || n+r.blocks[end].size() <= readAhead) {
			n += r.blocks[end].size()
			end++
		}
		b, err := r.src.read(ctx, off, n)
		if err != nil {
			return fmt.Errorf("read blocks %d to %d: %w", i, end-1, err)
		}
		for ; i < end; i++ {
			size := r.blocks[i].size()
			block, err := r.decode(i, b[:size:size])
			if err != nil {
				return err
			}
			if err := f(i, block); err != nil {
				return err
			}
			b = b[size:]
		}
	}
	return nil
}

// each calls f for the entries of a table's block.
func (b *Block) each(clip checkpoint.HashRange, f func(Entry) error) error {
	for i := range b.n {
		if e := b.Entry(i); clip.Contains(e.Hash) {
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachHashed calls f for the entries in clip.
func (b *Block) eachHashed(at place, clip checkpoint.HashRange, hash Hash, f func(Entry) error) error {
	in := b.Info.Range
	if hash == nil {
		if in.Lo < clip.Lo || in.Hi > clip.Hi {
			return fmt.Errorf("%s: %v straddles the clip %v: a hash function is needed", at, span{in.Lo, in.Hi}, span{clip.Lo, clip.Hi})
		}
	}
	for i := range b.n {
		e := b.Entry(i)
		if hash != nil {
			e.Hash = hash(e.Key)
			if !in.Contains(e.Hash) {
				return at.corrupt("hash of the key of entry "+fmt.Sprint(i)+" (is it the run's hash seed?)", span{in.Lo, in.Hi}, fmt.Sprintf("%016x", e.Hash))
			}
			if !clip.Contains(e.Hash) {
				continue
			}
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// Everything is the clip that leaves nothing out.
var Everything = checkpoint.HashRange{Hi: math.MaxUint64}
