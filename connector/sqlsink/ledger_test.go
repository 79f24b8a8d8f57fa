package sqlsink

import (
	"database/sql/driver"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/staunchdev/staunch/connector"
)

// What is inserted at commit is what was written, of the same type.
func TestValuesKeepTheirTypeInACommittable(t *testing.T) {
	zone := time.FixedZone("", 2*3600)
	in := []any{int64(math.MinInt64), int64(math.MaxInt64), int64(0), 1.5, float64(2), math.Inf(-1), math.MaxFloat64, true, false,
		"", "text", "not \xff UTF-8", []byte{}, []byte{0, 255}, nil, time.Date(2026, 1, 2, 3, 4, 5, 678901234, zone)}
	enc, err := rowEncoding.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out []any
	if err := rowDecoding.Unmarshal(enc, &out); err != nil {
		t.Fatal(err)
	}
	for i := range in {
		if want, ok := in[i].(time.Time); ok {
			if got, ok := out[i].(time.Time); !ok || !got.Equal(want) || got.Format(time.RFC3339Nano) != want.Format(time.RFC3339Nano) {
				t.Errorf("%v became %v", want, out[i])
			}
			continue
		}
		if !reflect.DeepEqual(in[i], out[i]) {
			t.Errorf("%T %v became %T %v", in[i], in[i], out[i], out[i])
		}
		if !driver.IsValue(out[i]) {
			t.Errorf("%T is no driver.Value", out[i])
		}
	}
}

func TestLedgerRefusesAnOlderGeneration(t *testing.T) {
	table := totals(t, "")
	old, young := Ledger(table, rowOf), Ledger(table, rowOf)
	if err := old.Recover(t.Context(), at(1, -1), nil); err != nil {
		t.Fatal(err)
	}
	w := writer(t, old, at(1, 0))
	if err := w.Write(t.Context(), connector.Batch[total]{Values: []total{{"a", 1}}}); err != nil {
		t.Fatal(err)
	}
	cs, err := w.Prepare(t.Context(), 1)
	if err != nil || len(cs) != 1 {
		t.Fatal(cs, err)
	}
	if err := young.Recover(t.Context(), at(2, -1), nil); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Commit":            old.Commit(t.Context(), cs),
		"Recover":           old.Recover(t.Context(), at(1, -1), cs),
		"Commit by another": Ledger(table, rowOf).Commit(t.Context(), cs),
	} {
		if !errors.Is(err, connector.ErrFenced) {
			t.Errorf("%s got %v, want ErrFenced", name, err)
		}
	}
	if rows := query(t, table.DSN, "SELECT name, n FROM totals"); len(rows) != 0 {
		t.Errorf("%v was inserted", rows)
	}
	if err := young.Commit(t.Context(), cs); err != nil {
		t.Errorf("the newer generation commits what an older one prepared: %v", err)
	}
}

func TestLedgerOfManyRowsIsOneTransaction(t *testing.T) {
	table := totals(t, " CHECK (n <> 999)")
	s := Ledger(table, rowOf)
	if err := s.Recover(t.Context(), at(1, -1), nil); err != nil {
		t.Fatal(err)
	}
	w := writer(t, s, at(1, 0))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	want := 0
	var all []connector.Committable
	for id := range 3 {
		n := 1 + rnd.IntN(700)
		for range n {
			if err := w.Write(t.Context(), connector.Batch[total]{Values: []total{{"r", rnd.Int64N(900)}}}); err != nil {
				t.Fatal(err)
			}
		}
		want += n
		cs, err := w.Prepare(t.Context(), connector.CheckpointID(id+1))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cs...)
	}
	w.Write(t.Context(), connector.Batch[total]{Values: []total{{"refused", 999}}})
	bad, err := w.Prepare(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), append(all, bad...)); err == nil || !strings.Contains(err.Error(), bad[0].ID) {
		t.Errorf("got %v, want an error that names %s", err, bad[0].ID)
	}
	if n := len(query(t, table.DSN, "SELECT name, n FROM totals")); n != 0 {
		t.Errorf("%d rows of a transaction that failed", n)
	}
	for range 2 {
		if err := s.Commit(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		if n := len(query(t, table.DSN, "SELECT name, n FROM totals")); n != want {
			t.Errorf("%d rows, want %d", n, want)
		}
	}
}

func TestLedgerRefusesWhatItCannotRead(t *testing.T) {
	table := totals(t, "")
	s := Ledger(table, rowOf)
	if err := s.Recover(t.Context(), at(1, -1), nil); err != nil {
		t.Fatal(err)
	}
	w := writer(t, s, at(1, 0))
	w.Write(t.Context(), connector.Batch[total]{Values: []total{{"a", 1}}})
	cs, err := w.Prepare(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	data := cs[0].Data
	for n := range len(data) {
		if err := s.Commit(t.Context(), []connector.Committable{{ID: "cut", Data: data[:n]}}); err == nil {
			t.Errorf("cut to %d of %d bytes: no error", n, len(data))
		}
	}
	wider := table
	wider.Columns = []string{"name", "n", "more"}
	other := Ledger(wider, rowOf)
	if err := other.Recover(t.Context(), at(2, -1), cs); err == nil || !strings.Contains(err.Error(), "2 values were stored") {
		t.Errorf("other columns: %v", err)
	}
	var e epoch
	if _, err := cbor.UnmarshalFirst(data, &e); err != nil || e.String() != cs[0].ID {
		t.Errorf("%v, %v", e, err)
	}
}
