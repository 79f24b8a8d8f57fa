package casekit

import (
	"slices"
	"sync"
)

// Tally is a list that user code of any subtask adds to.
type Tally[T comparable] struct {
	mu   sync.Mutex
	list []T
}

// Add adds v.
func (l *Tally[T]) Add(v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, v)
}

// Len is how many there are.
func (l *Tally[T]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// Has says whether v is there.
func (l *Tally[T]) Has(v T) bool { return l.Count(v) > 0 }

// Count is how often v is there.
func (l *Tally[T]) Count(v T) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.list {
		if o == v {
			n++
		}
	}
	return n
}

// All are all, in the order in which they came.
func (l *Tally[T]) All() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}
