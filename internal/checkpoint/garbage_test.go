package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	o := Origin{Lineage: 1, Epoch: Epoch{20, 3}, ID: 444}
	for _, name := range []string{ObjectName(o, []byte{0xab, 1}), ManifestName(o, []byte{0xab, 1})} {
		if got, ok := ParseName(name); !ok || got != o {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
	if got, want := ObjectName(o, []byte{0xab, 1}), "obj/L1-G20-A3-C444-ab01"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, name := range []string{"", "obj/", "log/00000000000000000001", "obj/L1-G2-A3-C4", "obj/L1-G2-A3-C4-", "obj/L1-G2-A3-C4-a",
		"obj/L01-G2-A3-C4-ab", "obj/L1-G2-A3-C4-AB", "obj/L1-G2-A3-C99999999999999999999-ab", "x/obj/L1-G2-A3-C4-ab", "obj/L1-G2-A3-C4-ab/x"} {
		if o, ok := ParseName(name); ok {
			t.Errorf("%q is read as %v", name, o)
		}
	}
}

func TestGarbage(t *testing.T) {
	v := GarbageView{
		Epoch:    Epoch{5, 2},
		Held:     map[string]bool{"obj/L1-G4-A1-C9-aa": true, "ckpt/L1-G4-A1-C9-aa": true, "obj/L1-G5-A2-C11-aa": true},
		Disposed: map[string]bool{"obj/L1-G5-A2-C10-d0": true, "obj/L1-G4-A1-C9-aa": true, "obj/L1-G6-A1-C10-d0": true},
		Decided:  func(id ID) bool { return id <= 12 },
	}
	tests := []struct {
		name, why string
		deleted   bool
	}{
		{"ckpt/L1-G4-A1-C9-aa", "the manifest of a retained checkpoint", false},
		{"obj/L1-G4-A1-C9-aa", "a retained checkpoint still holds what a disposed one named too", false},
		{"obj/L1-G4-A1-C8-bb", "lower generation, nobody refers to it", true},
		{"ckpt/L1-G4-A1-C8-bb", "a manifest that no record names", true},
		{"obj/L1-G4-A7-C99-bb", "lower generation, whatever its attempt and id", true},
		{"obj/L1-G5-A1-C99-bb", "own generation, an attempt that was joined", true},
		{"obj/L1-G5-A2-C11-aa", "own and held", false},
		{"obj/L1-G5-A2-C12-bb", "own id, given up", true},
		{"obj/L1-G5-A2-C13-bb", "own id, pending", false},
		{"obj/L1-G5-A3-C1-bb", "an attempt that has not begun", false},
		{"obj/L1-G5-A2-C10-d0", "disposed of", true},
		{"obj/L1-G6-A1-C1-bb", "higher generation", false},
		{"obj/L1-G6-A1-C10-d0", "higher generation, whoever says it is disposed of", false},
		{"obj/photo.jpg", "not ours", false},
		{"log/00000000000000000003", "the log has its own rules", false},
	}
	var listing []string
	want := map[string]bool{}
	for _, tt := range tests {
		listing = append(listing, tt.name)
		if tt.deleted {
			want[tt.name] = true
		}
	}
	got := map[string]bool{}
	for _, d := range Garbage(listing, v) {
		got[d.Name] = true
		if d.Why == "" {
			t.Errorf("%s without a reason", d.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestGarbageOffline collects beside a running job: of its generation nothing.
func TestGarbageOffline(t *testing.T) {
	ds := Garbage([]string{"obj/L1-G5-A1-C1-aa", "obj/L1-G5-A2-C1-aa", "obj/L1-G4-A1-C1-aa"}, GarbageView{Epoch: Epoch{Generation: 5}})
	if len(ds) != 1 || ds[0].Name != "obj/L1-G4-A1-C1-aa" {
		t.Errorf("deletes %v", ds)
	}
}
