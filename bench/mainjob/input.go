package main

import (
	"fmt"
	"math/rand/v2"
)

// input is preloaded: every key once, and then random keys that are read in
// turn without end.
type input[K comparable] struct {
	each []K
	loop []K
}

// loopRecords is more than what the caches hold.
const loopRecords = 4 << 20

// numbers are keys of 8 bytes, spread over all of them.
func numbers(keys int) input[uint64] {
	return newInput(keys, func(order []uint32) []uint64 {
		out := make([]uint64, len(order))
		for i, k := range order {
			out[i] = uint64(k) * 0x9e3779b97f4a7c15
		}
		return out
	})
}

// texts are keys of 12 bytes. As in a file that was read, the bytes of one
// record lie behind those of the record before it.
func texts(keys int) input[string] {
	return newInput(keys, func(order []uint32) []string {
		buf := make([]byte, 0, 12*len(order))
		for _, k := range order {
			buf = fmt.Appendf(buf, "cust-%07d", k)
		}
		all := string(buf)
		out := make([]string, len(order))
		for i := range out {
			out[i] = all[12*i : 12*i+12]
		}
		return out
	})
}

func newInput[K comparable](keys int, records func(order []uint32) []K) input[K] {
	r := rand.New(rand.NewPCG(1, uint64(keys)))
	each := make([]uint32, keys)
	for i := range each {
		each[i] = uint32(i)
	}
	r.Shuffle(keys, func(i, j int) { each[i], each[j] = each[j], each[i] })
	loop := make([]uint32, loopRecords)
	for i := range loop {
		loop[i] = uint32(r.IntN(keys))
	}
	return input[K]{each: records(each), loop: records(loop)}
}
