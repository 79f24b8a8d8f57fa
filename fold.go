package staunch

import (
	"bytes"
	"cmp"
	"context"

	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/statestore"
)

// Aggregator folds T into A and shows it as R. Package agg has the usual ones.
type Aggregator[T, A, R any] struct {
	Add        func(acc A, in T) A
	Merge      func(a, b A) A // needed by Session
	Result     func(acc A) R
	New        func() A // nil: the zero A
	Properties Properties
}

// Aggregate keeps a running aggregate of each key and emits it when it
// changes.
func Aggregate[K comparable, T, A, R any](s Keyed[K, T], name string, a Aggregator[T, A, R], opts ...Option) Stream[KV[K, R]] {
	n := keyedNode(s, "aggregate", name, opts)
	n.Properties = graph.Properties(a.Properties)
	if a.Add == nil || a.Result == nil {
		s.s.job.fault("%s: the aggregator has no Add or no Result", n.label)
	}
	// Whether the accumulator has changed is seen in its encoding: A need not be
	// comparable, and Add may change in place what the old one points to.
	c := codec.For[A]()
	return fold[K, T, KV[K, R], A](s, n, "aggregate", func() folder[K, T, KV[K, R]] {
		var before, after []byte
		return func(o *foldOp[K, T, KV[K, R]], r *element.Run[T]) (err error) {
			for i := range r.Values {
				k := o.take(r, i)
				acc, ok := statestore.Get[A](o.t)
				if !ok && a.New != nil {
					acc = a.New()
				}
				if before, err = c.Append(before[:0], acc); err != nil {
					return o.failed(err)
				}
				acc = a.Add(acc, r.Values[i])
				if after, err = c.Append(after[:0], acc); err != nil {
					return o.failed(err)
				}
				if ok && bytes.Equal(before, after) {
					continue
				}
				statestore.Set(o.t, acc)
				o.c.Emit(KV[K, R]{k, a.Result(acc)})
			}
			return nil
		}
	})
}

// Count counts the records of each key, and emits each new count.
func Count[K comparable, T any](s Keyed[K, T], name string, opts ...Option) Stream[KV[K, int64]] {
	n := keyedNode(s, "count", name, opts)
	return fold[K, T, KV[K, int64], int64](s, n, "count", func() folder[K, T, KV[K, int64]] {
		return func(o *foldOp[K, T, KV[K, int64]], r *element.Run[T]) error {
			for i := range r.Values {
				k := o.take(r, i)
				if n := statestore.Own[int64](o.t); n != nil {
					*n++
					o.c.Emit(KV[K, int64]{k, *n})
					continue
				}
				n, _ := statestore.Get[int64](o.t)
				n++
				statestore.Set(o.t, n)
				o.c.Emit(KV[K, int64]{k, n})
			}
			return nil
		}
	})
}

// Reduce combines the records of each key with f, and emits each result. The
// first record of a key is its first result.
func Reduce[K comparable, T any](s Keyed[K, T], name string, f func(acc, in T) T, opts ...Option) Stream[T] {
	n := keyedNode(s, "reduce", name, opts)
	if f == nil {
		s.s.job.fault("%s: the function is nil", n.label)
	}
	return fold[K, T, T, T](s, n, "value", func() folder[K, T, T] {
		return func(o *foldOp[K, T, T], r *element.Run[T]) error {
			for i, v := range r.Values {
				o.take(r, i)
				if acc := statestore.Own[T](o.t); acc != nil {
					*acc = f(*acc, v)
					o.c.Emit(*acc)
					continue
				}
				if acc, ok := statestore.Get[T](o.t); ok {
					v = f(acc, v)
				}
				statestore.Set(o.t, v)
				o.c.Emit(v)
			}
			return nil
		}
	})
}

// Distinct emits the first record of each key. It is Absorbing. Forget bounds
// what it remembers.
func Distinct[K comparable, T any](s Keyed[K, T], name string, opts ...Option) Stream[T] {
	n := keyedNode(s, "distinct", name, opts)
	n.Properties = graph.Absorbing
	return fold[K, T, T, bool](s, n, "seen", func() folder[K, T, T] {
		return func(o *foldOp[K, T, T], r *element.Run[T]) error {
			for i := range r.Values {
				o.take(r, i)
				if !o.t.Has() {
					statestore.Set(o.t, true)
					o.c.Emit(r.Values[i])
				}
			}
			return nil
		}
	})
}

// Latest emits a record when its version is greater than any of its key
// before. It is Absorbing.
func Latest[K comparable, T any, V cmp.Ordered](s Keyed[K, T], name string, version func(T) V, opts ...Option) Stream[T] {
	n := keyedNode(s, "latest", name, opts)
	n.Properties = graph.Absorbing
	if version == nil {
		s.s.job.fault("%s: the function is nil", n.label)
	}
	return fold[K, T, T, V](s, n, "version", func() folder[K, T, T] {
		return func(o *foldOp[K, T, T], r *element.Run[T]) error {
			for i := range r.Values {
				o.take(r, i)
				// A NaN is less than any other version, so it never stands in the way.
				now := version(r.Values[i])
				if last, ok := statestore.Get[V](o.t); !ok || cmp.Compare(now, last) > 0 {
					statestore.Set(o.t, now)
					o.c.Emit(r.Values[i])
				}
			}
			return nil
		}
	})
}

// folder is the code of a built-in keyed operator with one state: it processes
// a slice. It is not called for each record, since that call would cost as much
// as the rest of a count.
type folder[K comparable, In, Out any] func(o *foldOp[K, In, Out], r *element.Run[In]) error

// fold makes n an operator that runs a folder over one value state of type A.
// new makes the folder of each subtask.
func fold[K comparable, In, Out, A any](s Keyed[K, In], n *node, state string, new func() folder[K, In, Out]) Stream[Out] {
	j := s.s.job
	out := mainPort[Out](j, n)
	store, err := newStore[K](nil)
	if err != nil {
		return out // KeyBy has said so
	}
	decl, err := valueDecl[A](state, n.cfg.forget)
	if err == nil {
		_, err = store.Declare(decl)
	}
	if err != nil {
		j.fault("%s: %w", n.label, err)
		return out
	}
	n.declare(store)
	n.make = func(name string, outs [][]any) operator.Made {
		o := &foldOp[K, In, Out]{decl: decl, fold: new()}
		o.keyedCall = newKeyedCall[K, In, Out](n, name, s.key, outs)
		return operator.Made{Op: o, Entries: []operator.Entry{operator.NewEntry[In](o)}}
	}
	return out
}

// foldOp is one subtask of a built-in keyed operator. It works on its table
// directly, without the handle that user code goes through.
type foldOp[K comparable, In, Out any] struct {
	keyedCall[K, In, Out]
	decl statestore.Decl
	t    *statestore.Table
	fold folder[K, In, Out]
}

func (o *foldOp[K, In, Out]) Open(rt *operator.Runtime) error {
	err := o.bind(rt)
	if err != nil {
		return err
	}
	if o.t, err = o.store.Declare(o.decl); err != nil {
		return err
	}
	rt.Exec(func(ctx context.Context) { err = o.restore(ctx) }, func() {
		if err != nil {
			rt.Fail(err)
		}
	})
	return nil
}

func (o *foldOp[K, In, Out]) Process(r *element.Run[In]) error {
	o.begin(r)
	if err := o.fold(o, r); err != nil {
		return err
	}
	return o.end()
}
