package operator

import "github.com/staunchdev/staunch/internal/element"

type filter[T any] struct {
	stateless[T]
	keep  func(T) bool
	out   Output[T]
	times []int64
}

// NewFilter returns an operator that passes on the records that keep returns
// true for.
func NewFilter[T any](name string, keep func(T) bool, outs []any) Made {
	f := &filter[T]{stateless: stateless[T]{name: name}, keep: keep, out: NewOutput[T](outs)}
	return Made{Op: f, Entries: []Entry{NewEntry[T](f)}}
}

func (f *filter[T]) Process(r *element.Run[T]) error {
	values, times := f.out.Run.Values[:0], f.times[:0]
	f.in = r
	if r.Times == nil {
		for i, v := range r.Values {
			f.at = i
			if f.keep(v) {
				values = append(values, v)
			}
		}
	} else {
		for i, v := range r.Values {
			f.at = i
			if f.keep(v) {
				values, times = append(values, v), append(times, r.Times[i])
			}
		}
		f.times = times
		f.out.Run.Times = times
	}
	f.in = nil
	f.out.Run.Values = values
	err := f.out.Flush()
	f.out.Run.Times = nil
	return err
}

func (f *filter[T]) Watermark(t int64) error { return f.out.Watermark(t) }
