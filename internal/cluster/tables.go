package cluster

import (
	"context"
	"fmt"
	"hash/crc32"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc32c(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// tables writes the parts of a manifest that are tables: splits, committables,
// operator state, statistics. Small ones stay in the manifest itself.
type tables struct {
	packer  *statefile.Packer
	mode    cbor.EncMode
	objects []checkpoint.Object
}

func newTables(p *statefile.Packer) *tables {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(fmt.Sprintf("cluster: encoding options: %v", err)) // they are constant
	}
	return &tables{packer: p, mode: mode}
}

// row is an entry of a table: a value that is encoded, or bytes.
type row struct {
	key   string
	value any
}

// write writes a table; no rows are no table. The reference's object is an
// index into t.objects.
func (t *tables) write(ctx context.Context, rows []row) (*checkpoint.Ref, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	w := t.packer.NewRun(statefile.RunConfig{
		Kind: checkpoint.TableRun, KeyWidth: statefile.Variable, SubWidth: statefile.Absent, ValWidth: statefile.Variable,
	})
	defer w.Abort()
	for i, r := range rows {
		b, ok := r.value.([]byte)
		if !ok {
			var err error
			if b, err = t.mode.Marshal(r.value); err != nil {
				return nil, fmt.Errorf("encode %q: %w", r.key, err)
			}
		}
		if err := w.Add(uint64(i), []byte(r.key), nil, b, 0); err != nil {
			return nil, fmt.Errorf("write %q: %w", r.key, err)
		}
	}
	pending, err := w.Finish()
	if err != nil {
		return nil, err
	}
	refs, objects, err := statefile.Collect(ctx, pending)
	if err != nil {
		return nil, err
	}
	ref := refs[0]
	if ref.Object >= 0 {
		ref.Object = t.object(objects[ref.Object])
	}
	return &ref, nil
}

func (t *tables) object(o checkpoint.Object) int {
	for i, have := range t.objects {
		if have.ID == o.ID {
			return i
		}
	}
	t.objects = append(t.objects, o)
	return len(t.objects) - 1
}
