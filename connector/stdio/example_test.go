package stdio_test

import (
	"context"
	"fmt"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/stdio"
)

func ExamplePrintf() {
	sink := stdio.Printf(func(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) })
	w, err := sink.Writer(context.Background(), connector.Instance{})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	w.Write(context.Background(), connector.Batch[int]{Values: []int{1250, 99}})
	// Output:
	// 12.50
	// 0.99
}
