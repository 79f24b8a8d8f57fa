package cluster

import (
	"slices"
	"testing"
)

func TestSerialRunsOneAfterTheOther(t *testing.T) {
	var s serial
	var log []string
	var ends []func()
	for _, name := range []string{"a", "b", "c"} {
		s.do(func(done func()) {
			log = append(log, name)
			ends = append(ends, done)
		})
	}
	if !slices.Equal(log, []string{"a"}) {
		t.Fatalf("before a is done: %v", log)
	}
	ends[0]()
	ends[1]()
	if !slices.Equal(log, []string{"a", "b", "c"}) || s.idle() {
		t.Fatalf("after b is done: %v, idle %v", log, s.idle())
	}
	if ends[2](); !s.idle() {
		t.Fatal("nothing is left, and it is not idle")
	}
}
