package statefile

import (
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// TestGolden keeps the bytes of each kind of block. A difference means that
// states on disk can no longer be read: only a new version may change them.
func TestGolden(t *testing.T) {
	key := func(n uint64) []byte { return le.AppendUint64(nil, n) }
	tests := []struct {
		name    string
		c       RunConfig
		entries []Entry
	}{
		{"base", RunConfig{Kind: checkpoint.BaseRun, Range: Everything, KeyWidth: 8, SubWidth: Absent, ValWidth: 8}, []Entry{
			{Hash: 0x10, Key: key(1), Value: key(100)},
			{Hash: 0x10, Key: key(2), Value: key(200)},
			{Hash: 0xff00000000000000, Key: key(3), Value: key(300)},
		}},
		{"base-ttl", RunConfig{Kind: checkpoint.BaseRun, Range: Everything, KeyWidth: Variable, SubWidth: Variable, ValWidth: Variable, Times: true}, []Entry{
			{Hash: 0x10, Key: []byte("alice"), Sub: []byte("x"), Value: []byte("one"), Time: 1700000000},
			{Hash: 0x10, Key: []byte("alice"), Sub: []byte(""), Value: []byte(""), Time: 1700000001},
		}},
		{"delta", RunConfig{Kind: checkpoint.DeltaRun, Range: Everything, KeyWidth: 8, SubWidth: Absent, ValWidth: 4, Times: true}, []Entry{
			{Hash: 0x10, Key: key(1), Value: []byte("abcd"), Time: 7},
			{Hash: 0x11, Key: key(2), Deleted: true},
			{Hash: 0x12, Key: key(3), Value: []byte("efgh"), Time: 8},
		}},
		{"list", RunConfig{Kind: checkpoint.ListRun, Range: Everything, KeyWidth: Variable, SubWidth: 4, ValWidth: Variable, Deletes: true}, []Entry{
			{Hash: 0x10, Key: []byte("alice"), Sub: []byte{0, 0, 0, 0}, Deleted: true},
			{Hash: 0x10, Key: []byte("alice"), Sub: []byte{0, 0, 0, 2}, Value: []byte("third")},
			{Hash: 0x10, Key: []byte("alice"), Sub: []byte{0, 0, 0, 3}, Value: []byte("fourth")},
		}},
		{"timers", RunConfig{Kind: checkpoint.TimerRun, Range: Everything, KeyWidth: 8, SubWidth: Variable, ValWidth: 8, Times: true}, []Entry{
			{Hash: 0x10, Key: key(1), Sub: []byte("close"), Value: key(1700000000_500000000), Time: TimerSeconds(1700000000_500000000)},
			{Hash: 0x20, Key: key(2), Sub: []byte("close"), Value: key(1600000000_000000000), Time: TimerSeconds(1600000000_000000000)},
		}},
		{"table", RunConfig{Kind: checkpoint.TableRun, KeyWidth: Variable, SubWidth: Absent, ValWidth: Variable}, []Entry{
			{Hash: 0, Key: []byte("orders/0.jsonl"), Value: []byte{1, 2, 3}},
			{Hash: 1, Key: []byte("orders/1.jsonl"), Value: []byte{4}},
		}},
		{"empty", RunConfig{Kind: checkpoint.BaseRun, Range: Everything, KeyWidth: 8, SubWidth: Absent, ValWidth: 8}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newMapStore()
			p := NewPacker(t.Context(), s, named(Options{}))
			p.inline = InlineSubtask // nothing more goes inline: the file is a whole object
			refs, objects, err := Collect(t.Context(), add(t, p, tt.c, tt.entries))
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", tt.name+".hex")
			got := hex.Dump(s.objects[objects[0].Name])
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("bytes changed:\n%s\nwant:\n%s", got, want)
			}
			if tt.c.Kind == checkpoint.TimerRun && refs[0].MinTimer != 1600000000 {
				t.Errorf("least timer %d", refs[0].MinTimer)
			}
			r, err := OpenRun(t.Context(), s, refs[0], objects)
			if err != nil {
				t.Fatal(err)
			}
			var entries []Entry
			err = r.All(t.Context(), Everything, nil, func(e Entry) error {
				e.Hash = tt.entries[len(entries)].Hash // of keys that no hash function made
				entries = append(entries, e)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := diffEntries(tt.entries, entries); diff != "" {
				t.Error(diff)
			}
		})
	}
}
