package staunch

import (
	"reflect"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/keyhash"
)

// KV is a key and its value.
type KV[K comparable, V any] struct {
	Key   K
	Value V
}

// Keyed is a Stream whose records are placed by key.
type Keyed[K comparable, T any] struct {
	s   Stream[T]
	key func(T) K
}

// Stream returns the records without their key. They stay placed by it: all
// records of a key go to the same subtask of what reads the stream.
func (k Keyed[K, T]) Stream() Stream[T] { return k.s }

// KeyBy places records by key. K must be flat and have one encoding a value: an
// integer, string, bool, or array or struct of these.
func KeyBy[T any, K comparable](s Stream[T], key func(T) K, opts ...Option) Keyed[K, T] {
	s.use("KeyBy")
	label := "KeyBy behind " + s.label()
	s.recode(s.job.options("KeyBy", label, opts), label)
	if key == nil {
		s.job.fault("%s: the function is nil", label)
	}
	if err := codec.CheckKey[K](); err != nil {
		s.job.fault("%s: a bad key: %w", label, err)
	}
	return Keyed[K, T]{s: s.placed(graph.Hash, keyHash(key)), key: key}
}

// keyHash makes the hash function of the edges behind KeyBy. A record's hash
// travels with it, so that the operator behind need not compute it again.
func keyHash[T any, K comparable](key func(T) K) func(seed uint64) (func(T) uint64, error) {
	return func(seed uint64) (func(T) uint64, error) {
		hash, err := keyhash.For[K](seed)
		if err != nil {
			return nil, err
		}
		return func(v T) uint64 { return hash(key(v)) }, nil
	}
}

// keyedNode makes n a keyed operator of s.
func keyedNode[K comparable, T any](s Keyed[K, T], kind, name string, opts []Option) *node {
	s.s.use(kind)
	j := s.s.job
	n := j.identity(kind, name, opts)
	n.Keyed, n.Stateful = true, true
	n.KeyType = reflect.TypeFor[K]().String()
	if codec.CheckKey[K]() == nil { // else KeyBy has said so
		schema := codec.For[K]().Schema()
		n.Key = &schema
	}
	connect(s.s, n)
	return n
}
