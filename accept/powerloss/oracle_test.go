package powerloss

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// input is what the job was given.
type input struct {
	dir    string
	orders map[string]order
}

// writeInput writes n orders into files of the given relative sizes.
func writeInput(t *testing.T, r *rand.Rand, n, customers int, sizes ...int) *input {
	t.Helper()
	in := &input{memoryDir(t), map[string]order{}}
	sum := 0
	for _, s := range sizes {
		sum += s
	}
	for i, s := range sizes {
		var b bytes.Buffer
		for range n * s / sum {
			o := order{fmt.Sprintf("o-%d", len(in.orders)), fmt.Sprintf("c-%d", r.IntN(customers)), r.Int64N(10_000) - 1_000}
			in.orders[o.ID] = o
			if err := json.NewEncoder(&b).Encode(o); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(in.dir, fmt.Sprintf("part-%d.jsonl", i)), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// errGap says that a line is missing before one that is there.
var errGap = errors.New("gap")

// check compares the committed lines with the input: no order twice, of each
// customer the numbers 1..n without a gap, and every balance the sum of what
// stands before it. It returns how many orders are missing.
func (in *input) check(out string) (missing int, err error) {
	names, err := filepath.Glob(filepath.Join(out, "ledger", "*.jsonl"))
	if err != nil {
		return 0, err
	}
	byCustomer := map[string]map[int64]line{}
	seen := map[string]bool{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		for raw := range bytes.Lines(b) {
			var l line
			if err := json.Unmarshal(raw, &l); err != nil {
				return 0, fmt.Errorf("%s: %q: %w", name, raw, err)
			}
			if o, ok := in.orders[l.ID]; !ok || o.Customer != l.Customer {
				return 0, fmt.Errorf("%s: %+v is no order of the input", name, l)
			}
			if seen[l.ID] {
				return 0, fmt.Errorf("%s: order %s is there twice", name, l.ID)
			}
			seen[l.ID] = true
			if byCustomer[l.Customer] == nil {
				byCustomer[l.Customer] = map[int64]line{}
			}
			byCustomer[l.Customer][l.Seq] = l
		}
	}
	for customer, lines := range byCustomer {
		balance := int64(0)
		for seq := int64(1); seq <= int64(len(lines)); seq++ {
			l, ok := lines[seq]
			if !ok {
				return 0, fmt.Errorf("customer %s: %d lines and none with number %d: %w", customer, len(lines), seq, errGap)
			}
			if balance += in.orders[l.ID].Cents; l.Balance != balance {
				return 0, fmt.Errorf("customer %s: balance %d at number %d, want %d", customer, l.Balance, seq, balance)
			}
		}
	}
	return len(in.orders) - len(seen), nil
}
