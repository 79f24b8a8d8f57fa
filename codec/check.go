package codec

import (
	"reflect"

	"github.com/staunchdev/staunch/internal/flat"
)

// Check says whether values of T survive For's codec whole. The error lists
// every place that would lose data, with its path and the reason.
func Check[T any]() error { return CheckType(reflect.TypeFor[T]()) }

// CheckType is Check for a type that is known only at run time.
func CheckType(t reflect.Type) error {
	if _, err := flat.Of(t); err == nil {
		return nil
	}
	return describe(t, cborTags).err()
}

// CheckKey says whether K may be a key: integers, strings, bools, arrays and
// structs of these. The error lists every place that is none of them.
func CheckKey[K comparable]() error { return CheckKeyType(reflect.TypeFor[K]()) }

// CheckKeyType is CheckKey for a type that is known only at run time.
func CheckKeyType(t reflect.Type) error {
	_, err := flat.OfKey(t)
	return err
}
