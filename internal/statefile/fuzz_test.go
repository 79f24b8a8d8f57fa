package statefile

import (
	"errors"
	"hash/crc32"
	"math/rand"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// FuzzBlock decodes any bytes as a block, once as they are and once with the
// checksums made right, so that the lengths inside are trusted by nobody.
func FuzzBlock(f *testing.F) {
	rnd := rand.New(rand.NewSource(1))
	id := [16]byte{1, 2, 3}
	for _, kind := range kinds {
		for range 6 {
			c, entries := randomRun(rnd, kind)
			if len(entries) == 0 || c.check() != nil {
				continue
			}
			b := newColumns(&c)
			for _, e := range entries[:min(len(entries), 9)] {
				b.add(e.Hash, e.Key, e.Sub, e.Value[:min(len(e.Value), 50)], e.Time, e.Deleted)
			}
			b.encode(kind, id, 0)
			f.Add(b.out)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < blockHeaderSize {
			return
		}
		decode := func() {
			h := parseBlockHeader(b)
			info := BlockInfo{
				Range:  checkpoint.HashRange{Lo: h.minHash, Hi: h.maxHash},
				Stored: len(b) - blockHeaderSize, Entries: int(h.entries), CRC: h.crc,
			}
			blk, err := decodeBlock(place{object: "fuzz"}, id, h.kind, info, b)
			if err != nil {
				if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
					t.Fatal(err)
				}
				return
			}
			n := 0
			for e := range blk.Entries() {
				if len(e.Key)+len(e.Sub)+len(e.Value) > len(b) {
					t.Fatal("entry is larger than its block")
				}
				n++
			}
			if n != int(h.entries) {
				t.Fatalf("%d entries, header says %d", n, h.entries)
			}
		}
		decode()
		b = append([]byte(nil), b...)
		h := parseBlockHeader(b)
		copy(b, blockMagic)
		h.rawLen = uint32(len(b) - blockHeaderSize)
		h.storedLen, h.blockNo, h.version, h.codec = h.rawLen, 0, version, codecRaw
		h.rawCRC = crc32.Checksum(b[blockHeaderSize:], castagnoli)
		h.put(b)
		le.PutUint32(b[44:], blockCRC(id, b))
		decode()
	})
}
