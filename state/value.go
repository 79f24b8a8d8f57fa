package state

import (
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statestore"
)

// Value is one T a key.
type Value[T any] struct{ t *statestore.Table }

// NewValue declares a Value.
func NewValue[T any](s Scope, name string, opts ...Option) Value[T] {
	return Value[T]{declare[T](s, checkpoint.ValueState, name, opts, nil)}
}

// Get returns the value, or the zero T.
func (v Value[T]) Get() T {
	x, _ := statestore.Get[T](v.t)
	return x
}

// Lookup returns the value and whether there is one.
func (v Value[T]) Lookup() (T, bool) { return statestore.Get[T](v.t) }

// Set stores x. The state keeps nothing that x points to.
func (v Value[T]) Set(x T) { statestore.Set(v.t, x) }

// Clear removes the value.
func (v Value[T]) Clear() { v.t.Delete() }

// Reducing is one T a key, combined with what is added.
type Reducing[T any] struct {
	t *statestore.Table
	f func(a, b T) T
}

// NewReducing declares a Reducing; f is associative.
func NewReducing[T any](s Scope, name string, f func(a, b T) T, opts ...Option) Reducing[T] {
	return Reducing[T]{declare[T](s, checkpoint.ValueState, name, opts, nil), f}
}

// Add combines x with the value and returns the result.
func (r Reducing[T]) Add(x T) T {
	if old, ok := statestore.Get[T](r.t); ok {
		x = r.f(old, x)
	}
	statestore.Set(r.t, x)
	return x
}

// Get returns the value, or the zero T.
func (r Reducing[T]) Get() T {
	x, _ := statestore.Get[T](r.t)
	return x
}

// Lookup returns the value and whether there is one.
func (r Reducing[T]) Lookup() (T, bool) { return statestore.Get[T](r.t) }

// Clear removes the value.
func (r Reducing[T]) Clear() { r.t.Delete() }
