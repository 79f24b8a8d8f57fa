package checkpoint

import (
	"encoding/binary"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Version 1 knows all of its fields, so one that is unknown is damage; a newer
// version is refused before its body is looked at.
var manifestDecoding = mustDecMode(cbor.DecOptions{
	DupMapKey:         cbor.DupMapKeyEnforcedAPF,
	IndefLength:       cbor.IndefLengthForbidden,
	TagsMd:            cbor.TagsForbidden,
	ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	MaxArrayElements:  1 << 28, // the input is checked for its length before anything is made
	MaxNestedLevels:   16,
})

func mustDecMode(o cbor.DecOptions) cbor.DecMode {
	m, err := o.DecMode()
	if err != nil {
		panic(fmt.Sprintf("checkpoint: decoding of manifests: %v", err))
	}
	return m
}

// DecodeManifest decodes what Encode made. name is the object's, for messages.
// Damage is a *CorruptError.
func DecodeManifest(name string, b []byte) (*Manifest, error) {
	corrupt := func(offset int64, what string, expected, found any) error {
		return &CorruptError{name, offset, what, fmt.Sprint(expected), fmt.Sprint(found)}
	}
	if len(b) < manifestHeader {
		return nil, corrupt(int64(len(b)), "size of the header", manifestHeader, len(b))
	}
	if magic := string(b[:8]); magic != manifestMagic {
		return nil, corrupt(0, "magic", fmt.Sprintf("%q", manifestMagic), fmt.Sprintf("%q", magic))
	}
	version := binary.LittleEndian.Uint16(b[8:])
	length := binary.LittleEndian.Uint32(b[12:])
	sum := binary.LittleEndian.Uint32(b[16:])
	body := b[manifestHeader:]
	if uint64(length) != uint64(len(body)) {
		return nil, corrupt(12, "length of the body", length, len(body))
	}
	// The checksum comes before the version: a flipped version is damage, and
	// only an intact one is newer.
	if found := manifestSum(b[:16], body); found != sum {
		return nil, corrupt(16, "crc32c", fmt.Sprintf("%08x", sum), fmt.Sprintf("%08x", found))
	}
	if version > manifestVersion {
		return nil, fmt.Errorf("manifest %s has version %d, this program knows %d: %w", name, version, manifestVersion, ErrNewer)
	}
	if flags := binary.LittleEndian.Uint16(b[10:]); version == 0 || flags != 0 {
		return nil, corrupt(8, "version and flags", "1 and 0", fmt.Sprintf("%d and %d", version, flags))
	}
	m := new(Manifest)
	if err := manifestDecoding.Unmarshal(body, m); err != nil {
		return nil, corrupt(manifestHeader, "body", "a manifest", err)
	}
	if where, err := m.check(); err != nil {
		return nil, corrupt(manifestHeader, "body, "+where, "a sound reference", err)
	}
	return m, nil
}
