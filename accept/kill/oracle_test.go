package kill

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"
)

// order is a line of the input, line one of the ledger.
type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
	Time     string `json:"time"`
}

type line struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Seq      int64  `json:"seq"`
	Balance  int64  `json:"balance_cents"`
}

type total struct{ Orders, Cents int64 }

// input is what a job was given.
type input struct {
	dir    string
	orders map[string]order
	files  map[string][]string // ids of each file, in order
}

// customers is how many there are: enough that the state does not fit into the
// manifest, so that checkpoints have objects.
const customers = 1000

// writeInput writes n orders of some customers into files of the given relative
// sizes.
func writeInput(t *testing.T, r *rand.Rand, n int, sizes ...int) *input {
	t.Helper()
	in := &input{dir: t.TempDir(), orders: map[string]order{}, files: map[string][]string{}}
	sum := 0
	for _, s := range sizes {
		sum += s
	}
	id := 0
	for i, s := range sizes {
		name := fmt.Sprintf("part-%d.jsonl", i)
		f, err := os.Create(filepath.Join(in.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		for range n * s / sum {
			o := order{ID: fmt.Sprintf("o-%d", id), Customer: fmt.Sprintf("c-%d", r.IntN(customers)), Cents: r.Int64N(10_000) - 1_000,
				Time: fmt.Sprintf("2026-01-02T%02d:%02d:%02dZ", id/3600%24, id/60%60, id%60)}
			id++
			b, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			w.Write(b)
			w.WriteByte('\n')
			in.orders[o.ID] = o
			in.files[name] = append(in.files[name], o.ID)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// readLedger reads every committed line.
func readLedger(t *testing.T, data string) []line {
	t.Helper()
	return readLines[line](t, filepath.Join(data, "out", "ledger"))
}

// readLines reads the lines of all files that a glob over dir shows.
func readLines[T any](t *testing.T, dir string) []T {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []T
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		s := bufio.NewScanner(f)
		for s.Scan() {
			var v T
			if err := json.Unmarshal(s.Bytes(), &v); err != nil {
				t.Fatalf("%s: %q: %v", name, s.Text(), err)
			}
			out = append(out, v)
		}
		if err := s.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f.Close()
	}
	return out
}

func readTotals(t *testing.T, data string) map[string]total {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(data, "out", "totals.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT customer, orders, cents FROM totals")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := map[string]total{}
	for rows.Next() {
		var c string
		var x total
		if err := rows.Scan(&c, &x.Orders, &x.Cents); err != nil {
			t.Fatal(err)
		}
		out[c] = x
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// verdict counts what is wrong with a ledger.
type verdict struct {
	lost, twice, alien, gaps, wrongBalance, outOfOrder int
}

func (v verdict) exact() bool { return v == verdict{} }

// judge compares a ledger with the input: each order once, seq 1..n of each
// customer without gap, every balance the sum of what stands before, and the
// orders of one file and customer in their order.
func judge(in *input, ledger []line) verdict {
	var v verdict
	seen := map[string]int{}
	bySeq := map[string]map[int64]line{}
	for _, l := range ledger {
		o, ok := in.orders[l.ID]
		if !ok || o.Customer != l.Customer {
			v.alien++
			continue
		}
		seen[l.ID]++
		if bySeq[l.Customer] == nil {
			bySeq[l.Customer] = map[int64]line{}
		}
		bySeq[l.Customer][l.Seq] = l
	}
	for id := range in.orders {
		switch n := seen[id]; {
		case n == 0:
			v.lost++
		case n > 1:
			v.twice += n - 1
		}
	}
	seqOf := map[string]int64{}
	for _, lines := range bySeq {
		balance := int64(0)
		for seq := int64(1); seq <= int64(len(lines)); seq++ {
			l, ok := lines[seq]
			if !ok {
				v.gaps++
				continue
			}
			balance += in.orders[l.ID].Cents
			if l.Balance != balance {
				v.wrongBalance++
			}
			seqOf[l.ID] = seq
		}
	}
	for _, ids := range in.files {
		last := map[string]int64{}
		for _, id := range ids {
			c := in.orders[id].Customer
			if seq := seqOf[id]; seq != 0 {
				if seq < last[c] {
					v.outOfOrder++
				}
				last[c] = seq
			}
		}
	}
	return v
}

// lost returns the orders that are not in the ledger.
func lost(in *input, ledger []line) map[string]bool {
	ids := map[string]bool{}
	for id := range in.orders {
		ids[id] = true
	}
	for _, l := range ledger {
		delete(ids, l.ID)
	}
	return ids
}

// totalsWrong counts the customers whose totals are not those of the input.
func totalsWrong(in *input, got map[string]total) int {
	want := map[string]total{}
	for _, o := range in.orders {
		x := want[o.Customer]
		x.Orders++
		x.Cents += o.Cents
		want[o.Customer] = x
	}
	wrong := 0
	for c, w := range want {
		if got[c] != w {
			wrong++
		}
	}
	for c := range got {
		if _, ok := want[c]; !ok {
			wrong++
		}
	}
	return wrong
}

// The oracle must see each kind of fault.
func TestJudgeSeesFaults(t *testing.T) {
	in := &input{orders: map[string]order{
		"a": {ID: "a", Customer: "c", Cents: 1}, "b": {ID: "b", Customer: "c", Cents: 2},
	}, files: map[string][]string{"f": {"a", "b"}}}
	tests := []struct {
		name   string
		ledger []line
		want   verdict
	}{
		{"exact", []line{{"a", "c", 1, 1}, {"b", "c", 2, 3}}, verdict{}},
		{"lost", []line{{"a", "c", 1, 1}}, verdict{lost: 1}},
		{"twice", []line{{"a", "c", 1, 1}, {"b", "c", 2, 3}, {"b", "c", 3, 5}}, verdict{twice: 1}},
		{"gap", []line{{"a", "c", 1, 1}, {"b", "c", 3, 3}}, verdict{gaps: 1}},
		{"balance", []line{{"a", "c", 1, 1}, {"b", "c", 2, 2}}, verdict{wrongBalance: 1}},
		{"order", []line{{"b", "c", 1, 2}, {"a", "c", 2, 3}}, verdict{outOfOrder: 1}},
		{"alien", []line{{"a", "c", 1, 1}, {"b", "c", 2, 3}, {"x", "c", 3, 3}}, verdict{alien: 1}},
	}
	for _, tt := range tests {
		if got := judge(in, tt.ledger); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
