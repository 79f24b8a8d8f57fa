package file_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/file"
)

// A position is the offset of the next line; a reader goes on from it.
func ExampleSource() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.WriteFile(filepath.Join(dir, "in.txt"), []byte("one\ntwo\nthree\n"), 0o666)

	ctx := context.Background()
	src := file.Lines(filepath.Join(dir, "in.txt"))
	e, err := src.Enumerator(ctx, connector.Instance{})
	if err != nil {
		panic(err)
	}
	found, _, err := e.Discover(ctx)
	if err != nil {
		panic(err)
	}
	split := found[0]
	for _, max := range []int{1, 10} {
		r, err := src.Reader(ctx, connector.Instance{})
		if err != nil {
			panic(err)
		}
		r.Add(split)
		var b connector.Batch[string]
		_, split.Next, err = r.Poll(&b, max)
		fmt.Println(b.Values, split.Next.N, err == io.EOF)
		r.Close()
	}
	// Output:
	// [one] 4 false
	// [two three] 14 true
}

// What is prepared becomes visible at commit.
func ExampleSink() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	type order struct {
		ID    string `json:"id"`
		Cents int    `json:"cents"`
	}
	show := func() {
		names, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		for _, n := range names {
			b, _ := os.ReadFile(n)
			fmt.Printf("%s\n%s", filepath.Base(n), b)
		}
		fmt.Println(len(names), "segments")
	}

	ctx := context.Background()
	sink := file.NewSink(dir, codec.JSON[order]())
	w, err := sink.Writer(ctx, connector.Instance{Job: "shop", Operator: "ledger", Lineage: 1, Generation: 1, Attempt: 1})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	w.Write(ctx, connector.Batch[order]{Values: []order{{"o-1", 1250}, {"o-2", 99}}})
	cs, err := w.Prepare(ctx, 1)
	if err != nil {
		panic(err)
	}
	show()
	if err := sink.Commit(ctx, cs); err != nil {
		panic(err)
	}
	show()
	// Output:
	// 0 segments
	// shop.ledger.000001-0000000001-000001-00001-0000.jsonl
	// {"id":"o-1","cents":1250}
	// {"id":"o-2","cents":99}
	// 1 segments
}
