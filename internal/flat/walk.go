package flat

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// walk goes through a type once, and collects its leaves and its faults.
type walk struct {
	root   reflect.Type
	key    bool
	floats bool
	fields []Field
	faults []error
}

func (w *walk) check(t reflect.Type) error {
	w.visit(t, "")
	if len(w.faults) == 0 && t.Size() > MaxSize {
		w.fault("", "a value takes %d bytes, more than %d", t.Size(), MaxSize)
	}
	return errors.Join(w.faults...)
}

func (w *walk) fault(path, format string, args ...any) {
	at := w.root.String()
	if path != "" && !strings.HasPrefix(path, "[") {
		at += "."
	}
	w.faults = append(w.faults, fmt.Errorf("%s%s: %s", at, path, fmt.Sprintf(format, args...)))
}

// visit adds the leaves of t.
func (w *walk) visit(t reflect.Type, path string) {
	if name, ok := leafName(t); ok {
		w.fields = append(w.fields, Field{path, name})
		return
	}
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		if w.key {
			w.fault(path, "%s: a key holds no floats", t)
			return
		}
		w.floats = true
		w.fields = append(w.fields, Field{path, t.Kind().String()})
	case reflect.Array:
		w.array(t, path)
	case reflect.Struct:
		w.structure(t, path)
	default:
		w.fault(path, "%s is not flat", describe(t))
	}
}

func (w *walk) array(t reflect.Type, path string) {
	n := len(w.fields)
	w.visit(t.Elem(), path+"[]")
	dims := "[" + strconv.Itoa(t.Len()) + "]"
	if len(w.fields) == n+1 && w.fields[n].Path == path+"[]" {
		// An array of leaves, or of arrays of leaves, is one field.
		w.fields[n] = Field{path, dims + w.fields[n].Type}
		return
	}
	outer := Field{path, dims + "struct"}
	w.fields = append(w.fields[:n], append([]Field{outer}, w.fields[n:]...)...)
}

func (w *walk) structure(t reflect.Type, path string) {
	n := len(w.fields)
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			continue
		}
		at := f.Name
		if path != "" {
			at = path + "." + f.Name
		}
		if !f.IsExported() {
			w.fault(at, "field is not exported")
			continue
		}
		w.visit(f.Type, at)
	}
	if len(w.fields) == n && len(w.faults) == 0 {
		w.fields = append(w.fields, Field{path, "struct{}"})
	}
}

// leafName is the name of a leaf's encoding, so int and int64 have one name,
// as have all types of a kind.
func leafName(t reflect.Type) (string, bool) {
	switch t.Kind() {
	case reflect.Int:
		return "int64", true
	case reflect.Uint, reflect.Uintptr:
		return "uint64", true
	case reflect.Bool, reflect.String,
		reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return t.Kind().String(), true
	}
	return "", false
}

// describe names a type, and its kind if the name does not show it.
func describe(t reflect.Type) string {
	if t.Name() == "" || t.String() == t.Kind().String() {
		return t.String()
	}
	return t.String() + " (" + t.Kind().String() + ")"
}
