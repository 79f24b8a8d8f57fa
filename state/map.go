package state

import (
	"fmt"
	"iter"
	"reflect"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statestore"
)

// Map is a map from M to V a key; its entries are read and written one by one,
// however many there are.
type Map[M comparable, V any] struct {
	t   *statestore.Table
	sub *statestore.Sub[M]
}

// NewMap declares a Map. M is flat and without floats, as the type of a key is.
func NewMap[M comparable, V any](s Scope, name string, opts ...Option) Map[M, V] {
	t := declare[V](s, checkpoint.MapState, name, opts, func(d *statestore.Decl) (err error) {
		if err := codec.CheckKey[M](); err != nil {
			return fmt.Errorf("%s is no key of a map: %w", reflect.TypeFor[M](), err)
		}
		schema := codec.For[M]().Schema()
		d.SubSchema = &schema
		d.Sub, err = statestore.KeyOf[M]()
		return err
	})
	if t == nil {
		return Map[M, V]{}
	}
	sub, err := statestore.SubOf[M](t.Seed())
	if err != nil { // KeyOf accepted the type
		panic(err)
	}
	return Map[M, V]{t, sub}
}

// Get returns the value at k, or the zero V.
func (m Map[M, V]) Get(k M) V {
	v, _ := statestore.MapGet[M, V](m.t, m.sub, k)
	return v
}

// Lookup returns the value at k and whether there is one.
func (m Map[M, V]) Lookup(k M) (V, bool) { return statestore.MapGet[M, V](m.t, m.sub, k) }

// Set stores v at k.
func (m Map[M, V]) Set(k M, v V) { statestore.MapSet(m.t, m.sub, k, v) }

// Delete removes k.
func (m Map[M, V]) Delete(k M) { statestore.MapDelete(m.t, m.sub, k) }

// All yields the entries in the order of their encoded keys. Entries may be
// changed and deleted meanwhile: deleted ones are not yielded any more, added
// ones may not be.
func (m Map[M, V]) All() iter.Seq2[M, V] { return statestore.MapAll[M, V](m.t, m.sub) }

// Len is the number of entries.
func (m Map[M, V]) Len() int { return statestore.MapLen(m.t) }

// Clear removes all entries.
func (m Map[M, V]) Clear() { m.t.Delete() }
