package statestore

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage/memstore"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// TestEntriesNeverChange holds what docs/format/keyed-state.md says of each kind
// of state: a checkpoint of today must be readable for ever.
func TestEntriesNeverChange(t *testing.T) {
	now := int64(1_700_000_000 * time.Second)
	s := New(Config{Range: everything, Seed: 1, Key: must(KeyOf[string]()), Now: func() int64 { return now }})
	declare := func(d Decl) *Table { return must(s.Declare(d)) }
	value := declare(Decl{Name: "value", Kind: checkpoint.ValueState, Value: must(ValueOf[account](nil)), TTL: time.Hour})
	coded := declare(Decl{Name: "coded value", Kind: checkpoint.ValueState, Value: must(ValueOf(wordsCodec()))})
	list := declare(Decl{Name: "list", Kind: checkpoint.ListState, Value: must(ValueOf[uint16](nil))})
	texts := declare(Decl{Name: "list of strings", Kind: checkpoint.ListState, Value: must(ValueOf[string](nil))})
	m := declare(Decl{Name: "map", Kind: checkpoint.MapState, Value: must(ValueOf[int32](nil)), Sub: must(KeyOf[uint16]())})
	timer := declare(Decl{Name: "timer", Kind: checkpoint.TimerState})
	kr, sub := must(KeyerOf[string](s)), must(SubOf[uint16](1))
	for _, k := range []string{"alice", "bob"} {
		kr.Set(k, kr.Hash(k))
		Set(value, account{Open: true, Name: k, Cents: 258, Tag: "gold"})
		Set(coded, words{k, "x"})
		ListAppend(list, uint16(1), 2)
		ListAppend(texts, "", strings.Repeat("a", 20<<10), strings.Repeat("b", 20<<10), "c")
		MapSet(m, sub, 3, int32(-1))
		MapSet(m, sub, 4, int32(1))
		timer.TimerSet(now + 1)
		s.EndKey()
	}
	store := memstore.New()
	manifests, objects := write(t, s, snapshotOf(t, s, 1), store, "c")
	var b strings.Builder
	for _, sm := range manifests {
		fmt.Fprintf(&b, "%s %q: floor %d\n", sm.Kind, sm.Name, sm.TTLFloor)
		for _, seg := range sm.Segments {
			run, err := statefile.OpenRun(context.Background(), store, seg.Base, objects)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "  run of kind %d, %016x-%016x\n", seg.Base.Kind, seg.Range.Lo, seg.Range.Hi)
			err = run.All(context.Background(), statefile.Everything, s.Tables()[0].sp.hash, func(e statefile.Entry) error {
				v := fmt.Sprintf("%x", e.Value)
				if len(v) > 80 {
					v = fmt.Sprintf("%s... %d bytes", v[:40], len(e.Value))
				}
				fmt.Fprintf(&b, "    %016x key %x sub %x value %s time %d\n", e.Hash, e.Key, e.Sub, v, e.Time)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const file = "testdata/entries.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("entries changed:\ngot\n%swant\n%s", b.String(), want)
	}
}
