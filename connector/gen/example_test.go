package gen_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/gen"
)

// Records are random, and the same whenever they are made again.
func ExampleSource() {
	src := &gen.Source[string]{
		Make: func(split int, i int64) string {
			r := rand.New(rand.NewPCG(uint64(split), uint64(i)))
			return fmt.Sprintf("order %d-%d of customer %d", split, i, r.IntN(10))
		},
		Count: 1000, Splits: 4,
	}
	for range 2 {
		r, err := src.Reader(context.Background(), connector.Instance{})
		if err != nil {
			panic(err)
		}
		r.Add(connector.Split{ID: "3", Next: connector.Offset{N: 77}})
		var b connector.Batch[string]
		_, next, _ := r.Poll(&b, 1)
		fmt.Println(b.Values[0], "then", next.N)
		r.Close()
	}
	// Output:
	// order 3-77 of customer 3 then 78
	// order 3-77 of customer 3 then 78
}
