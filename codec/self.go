package codec

import (
	"encoding"
	"fmt"
	"math/big"
	"reflect"
	"time"

	"github.com/fxamacker/cbor/v2"
)

var (
	timeType   = reflect.TypeFor[time.Time]()
	bigIntType = reflect.TypeFor[big.Int]()
)

// selfEncoding is a way in which a type encodes itself; the encoder tries them
// in this order.
type selfEncoding struct {
	enc, dec         reflect.Type
	encName, decName string
}

var selfEncodings = []selfEncoding{
	{reflect.TypeFor[cbor.Marshaler](), reflect.TypeFor[cbor.Unmarshaler](), "MarshalCBOR", "UnmarshalCBOR"},
	{reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.BinaryUnmarshaler](), "MarshalBinary", "UnmarshalBinary"},
	{reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](), "MarshalText", "UnmarshalText"},
}

// selfEncoded says whether t encodes itself, and fails if it only seems to.
func selfEncoded(t reflect.Type) (bool, error) {
	if t == timeType || t == bigIntType {
		return true, nil
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false, nil // the element decides; an interface is refused anyway
	}
	p := reflect.PointerTo(t)
	for _, s := range selfEncodings {
		if !p.Implements(s.enc) {
			continue
		}
		if !p.Implements(s.dec) {
			return false, fmt.Errorf("%s has %s but no %s, and could not be read back", t, s.encName, s.decName)
		}
		if f, ok := promotes(t, s.enc); ok {
			return false, fmt.Errorf("%s embeds %s, whose %s would stand for the whole struct; give the field a name", t, f.Type, s.encName)
		}
		return true, nil
	}
	return false, nil
}

// promotes finds the embedded field that t may have a method from. A method of
// t's own that hides it looks the same to reflection; it is refused too, which
// is the safe side.
func promotes(t, enc reflect.Type) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct || t.NumField() < 2 {
		return reflect.StructField{}, false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && (f.Type.Implements(enc) || reflect.PointerTo(f.Type).Implements(enc)) {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func selfEncodes(t reflect.Type) bool {
	own, err := selfEncoded(t)
	return own && err == nil
}

// bare says that t has no encoding of its own.
func bare(t reflect.Type) bool {
	own, err := selfEncoded(t)
	return !own && err == nil
}
