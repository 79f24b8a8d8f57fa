package staunch

import (
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/statestore"
)

func TestNoKeyIsInHandBehindASlice(t *testing.T) {
	var table *statestore.Table
	in, _ := made[uint64, KV[uint64, int64]](t, func(j *Job) {
		Process(KeyBy(FromSlice(j, "in", []uint64{}), identity[uint64]), "op", func(s *Setup) ProcessFunc[uint64, uint64, KV[uint64, int64]] {
			d, err := valueDecl[int64]("n", 0)
			if err != nil {
				t.Fatal(err)
			}
			table = s.DeclareState(d)
			return func(*Ctx[KV[uint64, int64]], uint64, uint64) error {
				statestore.Set[int64](table, 1)
				return nil
			}
		})
	})
	if err := in.Process(&element.Run[uint64]{Values: []uint64{7}}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		f, ok := recover().(statestore.Failure)
		if !ok || !strings.Contains(f.Error(), "outside a call") {
			t.Errorf("a state access behind the slice: %v", f)
		}
	}()
	statestore.Get[int64](table)
}
