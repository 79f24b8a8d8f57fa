// Package state holds what a processor keeps: Value, List, Map and Reducing. A
// state is declared once, in the processor's constructor, and from then on
// reads and writes the entry of the key being processed.
//
// Handles are values bound to one subtask; using one outside a call of the
// processor panics. Methods return no error: a store that cannot go on panics
// with a value that the engine catches, for user code could do nothing about
// it; the restart policy decides what follows.
//
// A flat T (a number, bool, string, or an array or struct of these) is kept at
// its memory layout, so that Get and Set allocate nothing. Any other T is kept
// encoded. Either way the state keeps nothing that a value points to, and
// changing what Get returned changes no state.
package state

import (
	"fmt"
	"reflect"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statestore"
)

// Scope is where states are declared: *staunch.Setup.
type Scope interface {
	// DeclareState returns the table of the state, or nil if the declaration has
	// a fault; the scope then reports it.
	DeclareState(d statestore.Decl) *statestore.Table
}

// Option changes one state.
type Option interface{ apply(*options) }

type options struct {
	ttl    time.Duration
	former []string
	codec  any
}

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

// TTL forgets an entry d after its last write, by processing time. The time of
// writes is kept in seconds: an entry may live up to a second longer. A List is
// one entry, of a Map each key is one.
func TTL(d time.Duration) Option { return optionFunc(func(o *options) { o.ttl = d }) }

// Codec stores the values with c instead of codec.For. It is called by several
// goroutines at once.
func Codec[T any](c codec.Codec[T]) Option { return optionFunc(func(o *options) { o.codec = c }) }

// FormerNames are names under which older checkpoints hold this state.
func FormerNames(names ...string) Option {
	return optionFunc(func(o *options) { o.former = append(o.former, names...) })
}

// declare declares a state with values (or elements) of type T.
func declare[T any](s Scope, kind checkpoint.StateKind, name string, opts []Option, more func(*statestore.Decl) error) *statestore.Table {
	var o options
	for _, opt := range opts {
		opt.apply(&o)
	}
	d := statestore.Decl{Name: name, Kind: kind, TTL: o.ttl, Former: o.former}
	if d.Err = describeValue[T](&d, o.codec); d.Err == nil && more != nil {
		d.Err = more(&d)
	}
	return s.DeclareState(d)
}

// describeValue says in d how values of type T are kept.
func describeValue[T any](d *statestore.Decl, given any) (err error) {
	c := codec.For[T]()
	if given != nil {
		var ok bool
		if c, ok = given.(codec.Codec[T]); !ok {
			return fmt.Errorf("the codec %T is not for values of type %s", given, reflect.TypeFor[T]())
		}
		d.Value, err = statestore.ValueOf(c)
	} else {
		if err := codec.Check[T](); err != nil {
			return fmt.Errorf("%s would lose data: %w", reflect.TypeFor[T](), err)
		}
		if d.Value, err = statestore.ValueOf[T](nil); err != nil {
			d.Value, err = statestore.ValueOf(c) // it is not flat
		}
	}
	schema := c.Schema()
	d.ValueSchema = &schema
	return err
}
