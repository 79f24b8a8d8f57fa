package codec_test

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/staunchdev/staunch/codec"
)

func ExampleFor() {
	type Order struct {
		ID       uint64
		Customer string
	}
	c := codec.For[Order]()
	b, err := c.Append(nil, Order{7, "c-17"})
	if err != nil {
		fmt.Println(err)
		return
	}
	o, err := c.Decode(b)
	fmt.Println(len(b), "bytes:", o, err)
	fmt.Println(c.Schema().Format, c.Schema().Fields)
	// Output:
	// 13 bytes: {7 c-17} <nil>
	// flat [{ID uint64} {Customer string}]
}

func ExampleFunc() {
	// A temperature in hundredths of a degree, in two bytes.
	c := codec.Func("centidegree", 1,
		func(dst []byte, v float64) ([]byte, error) {
			return binary.BigEndian.AppendUint16(dst, uint16(int16(v*100))), nil
		},
		func(b []byte) (float64, error) {
			if len(b) != 2 {
				return 0, errors.New("a temperature takes two bytes")
			}
			return float64(int16(binary.BigEndian.Uint16(b))) / 100, nil
		})
	b, _ := c.Append(nil, -12.5)
	v, err := c.Decode(b)
	fmt.Printf("% x: %v %v\n", b, v, err)
	_, err = c.Decode(b[:1])
	fmt.Println(err)
	// Output:
	// fb 1e: -12.5 <nil>
	// a temperature takes two bytes
}

func ExampleCheck() {
	type Item struct{ price int }
	type Order struct {
		Items []Item `json:"items"`
		Hook  func()
	}
	fmt.Println(codec.Check[Order]())
	// Output:
	// codec_test.Order.items[].price: field is not exported, and codec_test.Item has no MarshalBinary
	// codec_test.Order.Hook: func() cannot be stored
}
