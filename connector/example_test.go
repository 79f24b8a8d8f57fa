package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/staunchdev/staunch/connector"
)

// A source of code that blocks, here a slice that is read from an offset.
func ExamplePull() {
	feed := []string{"created", "paid", "shipped"}
	src := connector.Pull[string]{
		Describe: connector.SourceSpec{Replayable: true, Bounded: true, System: "feed"},
		Splits: func(context.Context) ([]connector.Split, error) {
			return []connector.Split{{ID: "feed"}}, nil
		},
		Read: func(_ context.Context, s connector.Split, emit func(string, connector.Offset) error) error {
			for i := s.Next.N; i < int64(len(feed)); i++ {
				if err := emit(feed[i], connector.Offset{N: i + 1}); err != nil {
					return err
				}
			}
			return nil
		},
	}

	r, err := src.Reader(context.Background(), connector.Instance{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	r.Add(connector.Split{ID: "feed", Next: connector.Offset{N: 1}})
	for {
		var b connector.Batch[string]
		_, _, err := r.Poll(&b, 100)
		for _, v := range b.Values {
			fmt.Println(v)
		}
		if err == io.EOF {
			return
		}
		if errors.Is(err, connector.ErrEmpty) {
			<-r.Available()
		}
	}
	// Output:
	// paid
	// shipped
}

// Input that is gone is not waited for: the job fails with it at once, though its
// policy restarts it after other errors.
func ExamplePermanent() {
	errPurged := connector.Permanent(errors.New("purged by the broker"))
	err := fmt.Errorf("partition 3: read up to 17, the oldest is 40: %w", errPurged)
	fmt.Println(err)
	fmt.Println(errors.Is(err, errPurged), errors.Is(err, connector.ErrPermanent))
	// Output:
	// partition 3: read up to 17, the oldest is 40: purged by the broker
	// true true
}
