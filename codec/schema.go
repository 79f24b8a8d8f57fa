package codec

import (
	"encoding/binary"
	"hash/fnv"
)

// The formats of this package. They are in checkpoints.
const (
	formatFlat  = "flat"
	formatCBOR  = "cbor"
	formatJSON  = "json"
	formatText  = "text"
	formatBytes = "bytes"
)

// fingerprint is a hash of the format and the fields in their order. It is in
// checkpoints: two schemas with one fingerprint have the same encoding.
func fingerprint(format string, fields []Field) uint64 {
	h := fnv.New64a()
	write := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	write(format)
	for _, f := range fields {
		write(f.Name)
		write(f.Type)
	}
	return h.Sum64()
}
