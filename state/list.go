package state

import (
	"iter"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statestore"
)

// List is a sequence of T a key; Append does not read what is there.
type List[T any] struct{ t *statestore.Table }

// NewList declares a List.
func NewList[T any](s Scope, name string, opts ...Option) List[T] {
	return List[T]{declare[T](s, checkpoint.ListState, name, opts, nil)}
}

// Append adds xs at the end.
func (l List[T]) Append(xs ...T) { statestore.ListAppend(l.t, xs...) }

// All yields the elements in order, as they are when it begins.
func (l List[T]) All() iter.Seq[T] { return statestore.ListAll[T](l.t) }

// Len is the number of elements.
func (l List[T]) Len() int { return statestore.ListLen(l.t) }

// Set replaces the list.
func (l List[T]) Set(xs []T) { statestore.ListSet(l.t, xs) }

// Clear removes the list.
func (l List[T]) Clear() { l.t.Delete() }
