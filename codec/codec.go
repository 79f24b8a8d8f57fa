// Package codec turns values into bytes and back, and describes their schema.
//
// No codec need be named for state and edges: For chooses. Flat types (numbers,
// bools, strings, arrays and structs of flat types) are stored as they are,
// other types as CBOR by field name. Sources and sinks at the outside take one.
//
// A type that would lose data on the way is found by Check before a job runs;
// whether old bytes can be read as a new type is told by Compatible.
package codec

// Codec encodes T. It must be safe for use by several goroutines.
type Codec[T any] interface {
	// Append appends the encoding of v to dst.
	Append(dst []byte, v T) ([]byte, error)
	// Decode decodes b, and keeps nothing of it.
	Decode(b []byte) (T, error)
	// Schema names the format and the fields; it is kept in each checkpoint.
	Schema() Schema
}

// Schema is what a checkpoint keeps of a codec, to refuse what cannot be read.
type Schema struct {
	Format      string  `cbor:"1,keyasint"`
	Fingerprint uint64  `cbor:"2,keyasint"`
	Fields      []Field `cbor:"3,keyasint,omitempty"`
}

// Field is one field of a Schema.
type Field struct {
	Name string `cbor:"1,keyasint"`
	Type string `cbor:"2,keyasint"`
}
