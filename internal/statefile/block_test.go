package statefile

import (
	"errors"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// TestMalformedColumns decodes payloads whose checksums would be right: what a
// faulty writer could leave.
func TestMalformedColumns(t *testing.T) {
	u32 := func(words ...uint32) []byte {
		var b []byte
		for _, w := range words {
			b = le.AppendUint32(b, w)
		}
		return b
	}
	tests := []struct {
		name    string
		n       int
		flags   uint8
		payload []byte
		want    string // empty: it is well formed
	}{
		{"fixed keys", 2, 0, u32(4, 1, 2), ""},
		{"variable keys", 2, 0, u32(0, 1, 4, 0), ""},
		{"no width", 1, 0, []byte{8, 0, 0}, "length of the keys"},
		{"too few keys", 3, 0, u32(4, 1, 2), "length of the keys"},
		{"one byte more", 1, 0, append(u32(4, 1), 0), "payload length"},
		{"enormous width", 1, 0, u32(1<<32-1, 1), "width of the keys"},
		{"enormous count", 1<<32 - 1, 0, u32(maxField, 1), "length of the keys"},
		{"enormous count, variable", 1<<32 - 1, 0, u32(0, 1), "length of the keys"},
		{"descending ends", 3, 0, u32(0, 4, 2, 4, 0), "ends of the keys"},
		{"ends behind the payload", 1, 0, u32(0, 5, 0), "length of the keys"},
		{"no ops", 9, flagOps, []byte{0}, "length of the op bitmap"},
		{"ops behind the last entry", 2, flagOps, append([]byte{4}, u32(1)...), "length of the keys"},
		{"bit behind the last entry", 1, flagOps, append([]byte{2}, u32(4, 1)...), "op bitmap"},
		{"no times", 1, flagTimes, u32(4, 1), "length of the times"},
		{"no sub-keys", 1, flagSubs, u32(4, 1), "length of the sub-keys"},
		{"no values", 1, flagValues, u32(4, 1), "length of the values"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &Block{n: tt.n, kind: checkpoint.BaseRun}
			err := b.decodeColumns(place{object: "o"}, tt.flags, tt.payload)
			if tt.want == "" {
				if err != nil || len(b.Entry(1).Key) == 0 {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
