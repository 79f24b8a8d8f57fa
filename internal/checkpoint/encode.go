package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/fxamacker/cbor/v2"
)

// The envelope of a manifest: magic, version, flags, length of the body and
// crc32c of all the bytes before it and of the body; then the body. Integers are
// little endian. docs/format/manifest.md describes the bytes.
const (
	manifestMagic   = "STNCHMF1"
	manifestVersion = 1
	manifestHeader  = 8 + 2 + 2 + 4 + 4
)

// MaxInlineRun is the size up to which a run may stand in the manifest itself,
// MaxInline what all of them may take together.
const (
	MaxInlineRun = 4 << 10
	MaxInline    = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var manifestEncoding = mustEncMode(cbor.CoreDetEncOptions())

func mustEncMode(o cbor.EncOptions) cbor.EncMode {
	m, err := o.EncMode()
	if err != nil {
		panic(fmt.Sprintf("checkpoint: encoding of manifests: %v", err))
	}
	return m
}

// Encode returns the manifest's bytes; equal manifests have equal ones. One that
// is not sound, or holds more inline than is allowed, is an error.
func (m *Manifest) Encode() ([]byte, error) {
	if where, err := m.check(); err != nil {
		return nil, fmt.Errorf("encode manifest of checkpoint %d: %s: %w", m.ID, where, err)
	}
	body, err := manifestEncoding.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest of checkpoint %d: %w", m.ID, err)
	}
	if uint64(len(body)) > math.MaxUint32 {
		return nil, fmt.Errorf("encode manifest of checkpoint %d: %d bytes are too many", m.ID, len(body))
	}
	b := make([]byte, 0, manifestHeader+len(body))
	b = append(b, manifestMagic...)
	b = binary.LittleEndian.AppendUint16(b, manifestVersion)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, manifestSum(b, body))
	return append(b, body...), nil
}

// manifestSum covers the header too: an exchanged length or version is seen.
func manifestSum(header, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, body)
}

// check says where the manifest names what it does not have.
func (m *Manifest) check() (where string, err error) {
	inline := 0
	for where, r := range m.Refs() {
		if err := m.checkRef(r); err != nil {
			return where.String(), err
		}
		inline += len(r.Inline)
	}
	if inline > MaxInline {
		return "inline runs", fmt.Errorf("%d bytes, at most %d are allowed", inline, MaxInline)
	}
	return "", nil
}

func (m *Manifest) checkRef(r *Ref) error {
	switch {
	case r.Object < -1 || r.Object >= len(m.Objects):
		return fmt.Errorf("object %d of %d", r.Object, len(m.Objects))
	case r.Object == -1 && int64(len(r.Inline)) != r.Length:
		return fmt.Errorf("an inline run of %d bytes with length %d", len(r.Inline), r.Length)
	case r.Object == -1 && len(r.Inline) > MaxInlineRun:
		return fmt.Errorf("an inline run of %d bytes, at most %d are allowed", len(r.Inline), MaxInlineRun)
	case r.Object >= 0 && len(r.Inline) > 0:
		return fmt.Errorf("a run that is inline and in object %d", r.Object)
	case r.Offset < 0 || r.Length < 0 || r.Blocks < 0 || r.Entries < 0 || r.Deletes < 0 || r.Bytes < 0:
		return fmt.Errorf("a negative number in %+v", *r)
	case r.IndexOff < 0 || r.IndexOff > r.Length:
		return fmt.Errorf("an index at %d of a run of %d bytes", r.IndexOff, r.Length)
	case r.Object >= 0 && (r.Offset > m.Objects[r.Object].Size || r.Length > m.Objects[r.Object].Size-r.Offset):
		return fmt.Errorf("run [%d, +%d) of object %s, which has %d bytes", r.Offset, r.Length, m.Objects[r.Object].Name, m.Objects[r.Object].Size)
	case r.Clip.Lo > r.Clip.Hi:
		return fmt.Errorf("hash range %x to %x", r.Clip.Lo, r.Clip.Hi)
	}
	return nil
}
