package staunch

import (
	"fmt"
	"reflect"
	"time"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statestore"
)

// declare notes the states of a planned store in the graph.
func (n *node) declare(s *statestore.Store) {
	for _, t := range s.Tables() {
		d := t.Decl()
		n.States = append(n.States, checkpoint.StateMeta{
			Name: d.Name, Kind: d.Kind, Sub: d.SubSchema, Value: d.ValueSchema, TTL: int64(d.TTL), Former: d.Former,
		})
	}
}

// valueDecl declares the one state of a built-in operator.
func valueDecl[T any](name string, ttl time.Duration) (statestore.Decl, error) {
	if err := codec.Check[T](); err != nil {
		return statestore.Decl{}, fmt.Errorf("state %q: %v would lose data: %w", name, reflect.TypeFor[T](), err)
	}
	c := codec.For[T]()
	v, err := statestore.ValueOf[T](nil)
	if err != nil { // not flat
		if v, err = statestore.ValueOf(c); err != nil {
			return statestore.Decl{}, fmt.Errorf("state %q: %w", name, err)
		}
	}
	schema := c.Schema()
	return statestore.Decl{Name: name, Kind: checkpoint.ValueState, Value: v, ValueSchema: &schema, TTL: ttl}, nil
}
