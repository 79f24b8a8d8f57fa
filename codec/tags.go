package codec

import (
	"reflect"
	"strings"
)

// tagStyle is which struct tags a format looks at, the first one first.
type tagStyle []string

var (
	cborTags = tagStyle{"cbor", "json"}
	jsonTags = tagStyle{"json"}
)

// fieldTag is what the tags say of a field.
type fieldTag struct {
	name  string // as encoded
	named bool   // name is from the tag
	skip  bool   // the field is left out on purpose
	fault string
}

// of reads the tags of f as the encoders do.
func (s tagStyle) of(f reflect.StructField) fieldTag {
	for i, key := range s {
		tag := f.Tag.Get(key)
		if tag == "" {
			continue
		}
		if tag == "-" {
			// A field that is kept from the outside (json) is not thereby
			// meant to be forgotten at a restart.
			if i > 0 {
				return fieldTag{name: f.Name, fault: `the tag ` + key + `:"-" would leave it out; add a tag ` + s[0] + `:"name" to keep it or ` + s[0] + `:"-" to drop it`}
			}
			return fieldTag{name: f.Name, skip: true}
		}
		if name, _, _ := strings.Cut(tag, ","); name != "" {
			return fieldTag{name: name, named: true}
		}
		break
	}
	return fieldTag{name: f.Name}
}
