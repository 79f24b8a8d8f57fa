package element

import "reflect"

// Reuse says what Recycle does with r.
func (r *Run[T]) Reuse(free func(*Run[T])) { r.free = free }

// Reset empties r and keeps its memory. Where T has pointers they are cleared,
// so that an idle batch keeps no record alive.
func (r *Run[T]) Reset(pointers bool) {
	if pointers {
		clear(r.Values)
	}
	r.Values = r.Values[:0]
	if r.Times != nil {
		r.Times = r.Times[:0]
	}
	if r.Hashes != nil {
		r.Hashes = r.Hashes[:0]
	}
}

// HasPointers says whether values of type T keep other memory alive.
func HasPointers[T any]() bool { return pointers(reflect.TypeFor[T]()) }

func pointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	case reflect.Array:
		return t.Len() > 0 && pointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if pointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	}
	return true
}
