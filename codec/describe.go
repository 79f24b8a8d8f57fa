package codec

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/staunchdev/staunch/internal/flat"
)

// description is what a walk through a type finds: the fields of its schema,
// one for each node of the type, and the places that would lose data.
//
// A node's path is made of field names as encoded, "[]" for the elements of a
// list, "{}" and "{key}" for the values and keys of a map. A node's type is
// independent of Go's names, but for types that encode themselves.
type description struct {
	root   reflect.Type
	tags   tagStyle
	fields []Field
	faults []error
	inside []reflect.Type // from the root to the node at hand
}

func describe(t reflect.Type, tags tagStyle) *description {
	d := &description{root: t, tags: tags}
	d.visit(t, "", "")
	return d
}

// sorted is the fields by path: order in a Go struct does not matter to a
// format that goes by name.
func (d *description) sorted() []Field {
	slices.SortFunc(d.fields, func(a, b Field) int { return cmp.Compare(a.Name, b.Name) })
	return d.fields
}

func (d *description) err() error { return errors.Join(d.faults...) }

func (d *description) fault(path, format string, args ...any) {
	at := d.root.String()
	if path != "" && path[0] != '[' && path[0] != '{' {
		at += "."
	}
	d.faults = append(d.faults, fmt.Errorf("%s%s: %s", at, path, fmt.Sprintf(format, args...)))
}

func (d *description) add(path, typ string) { d.fields = append(d.fields, Field{path, typ}) }

// visit adds t at path. Prefix is "*" below a pointer.
func (d *description) visit(t reflect.Type, path, prefix string) {
	if slices.Contains(d.inside, t) {
		d.fault(path, "%s contains itself: a cyclic value could not be encoded, nor a very deep one read back", t)
		return
	}
	d.inside = append(d.inside, t)
	defer func() { d.inside = d.inside[:len(d.inside)-1] }()

	own, err := selfEncoded(t)
	if err != nil {
		d.fault(path, "%v", err)
		return
	}
	if own {
		d.add(path, prefix+t.PkgPath()+"."+t.Name())
		return
	}
	switch t.Kind() {
	case reflect.Int:
		d.add(path, prefix+"int64")
	case reflect.Uint:
		d.add(path, prefix+"uint64")
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.add(path, prefix+t.Kind().String())
	case reflect.Pointer:
		d.pointer(t, path, prefix)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 && bare(t.Elem()) {
			d.add(path, prefix+"bytes")
			return
		}
		d.add(path, prefix+"list")
		d.visit(t.Elem(), path+"[]", "")
	case reflect.Array:
		d.add(path, prefix+"["+strconv.Itoa(t.Len())+"]list")
		d.visit(t.Elem(), path+"[]", "")
	case reflect.Map:
		d.add(path, prefix+"map")
		if !selfEncodes(t.Key()) {
			if _, err := flat.OfKey(t.Key()); err != nil {
				d.fault(path+"{key}", "%s: a map key holds only integers, strings, bools, arrays and structs of these", t.Key())
				return
			}
		}
		d.visit(t.Key(), path+"{key}", "")
		d.visit(t.Elem(), path+"{}", "")
	case reflect.Struct:
		d.add(path, prefix+"struct")
		d.structure(t, path)
	default:
		d.add(path, prefix+t.Kind().String())
		d.fault(path, "%s cannot be stored", kindName(t))
	}
}

// pointer adds what t points to. CBOR and JSON have one null: a pointer to what
// may itself be null would come back nil for both.
func (d *description) pointer(t reflect.Type, path, prefix string) {
	e := t.Elem()
	switch {
	case prefix != "":
		d.fault(path, "a pointer to a pointer: which of them is nil would be lost")
	case (e.Kind() == reflect.Slice || e.Kind() == reflect.Map) && !selfEncodes(e):
		d.fault(path, "%s: nil and a pointer to nil could not be told apart", t)
	case e == timeType:
		d.fault(path, "*time.Time: nil and a pointer to the zero time could not be told apart; use time.Time and IsZero")
	default:
		d.visit(e, path, "*")
	}
}

func (d *description) structure(t reflect.Type, path string) {
	seen := map[string]string{} // Go name by encoded name
	d.structFields(t, path, seen)
}

// structFields adds the fields of t, those of embedded structs among them.
func (d *description) structFields(t reflect.Type, path string, seen map[string]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			if strings.Contains(f.Tag.Get("cbor"), "toarray") {
				d.fault(path, "the cbor option toarray goes by position; fields could be neither added nor removed")
			}
			continue
		}
		tag := d.tags.of(f)
		at := tag.name
		if path != "" {
			at = path + "." + at
		}
		embedded := f.Anonymous && !tag.named && f.Type.Kind() == reflect.Struct
		switch {
		case tag.fault != "":
			d.fault(at, "%s", tag.fault)
		case tag.skip:
		case !f.IsExported() && !embedded:
			d.fault(at, "field is not exported, and %s has no MarshalBinary", t)
		case embedded && !selfEncodes(f.Type):
			d.structFields(f.Type, path, seen)
		case f.Anonymous && !tag.named && f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct:
			d.fault(at, "an embedded pointer: nil and a pointer to an empty struct could not be told apart; give the field a name")
		case seen[tag.name] != "":
			d.fault(at, "two fields are encoded by this name: %s and %s", seen[tag.name], f.Name)
		default:
			seen[tag.name] = f.Name
			d.visit(f.Type, at, "")
		}
	}
}

// kindName names a type, and its kind if the name does not show it.
func kindName(t reflect.Type) string {
	if t.Name() == "" || t.String() == t.Kind().String() {
		return t.String()
	}
	return t.String() + " (" + t.Kind().String() + ")"
}
