package staunch

import (
	"slices"
	"testing"

	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
)

// columns keeps a copy of what it is given.
type columns struct {
	values []int
	times  []int64
}

func (c *columns) Process(r *element.Run[int]) error {
	c.values, c.times = slices.Clone(r.Values), slices.Clone(r.Times)
	return nil
}

func (c *columns) Watermark(int64) error { return nil }

func TestTheTimeColumnIsAbsentOrWhole(t *testing.T) {
	var got columns
	e := newEmitter[int]([]any{operator.Input[int](&got)})
	for _, tt := range []struct {
		name  string
		emit  func()
		times []int64
	}{
		{"no times", func() { e.emit(1, noTime); e.emit(2, noTime) }, nil},
		{"a time in the middle", func() { e.emit(1, noTime); e.emitAt(2, 20); e.emit(3, noTime) }, []int64{noTime, 20, noTime}},
		{"a slice with times", func() { e.timed = true; e.emit(1, 10); e.emitAt(2, 20) }, []int64{10, 20}},
		{"none again", func() { e.emit(1, noTime) }, nil},
	} {
		e.timed = false
		tt.emit()
		if err := e.flush(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.times, tt.times) || len(got.times) > 0 && len(got.times) != len(got.values) {
			t.Errorf("%s: times %v of values %v, want %v", tt.name, got.times, got.values, tt.times)
		}
	}
}
