package task

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/staunchdev/staunch/internal/operator"
)

// returned is the mail of work that has returned from the executor.
type returned struct {
	then     func()
	write    bool // of a snapshot: then is called even if the subtask is closing
	panicked error
}

// reserve is a reservation that is not answered yet.
type reserve struct {
	token uint64
	done  func(error)
}

// runtime makes what operator i is given.
func (t *Task) runtime(i int) *operator.Runtime {
	op := t.cfg.Ops[i]
	inst := t.cfg.Instance
	inst.Operator = op.Name
	log := t.log.With("operator", op.Name)
	if inst.Log == nil {
		inst.Log = log
	}
	rt := &operator.Runtime{
		Instance: inst, Context: t.ctx, Mode: t.cfg.Mode, Now: t.cfg.Now,
		HashSeed: t.cfg.HashSeed, Range: t.cfg.Range, Store: t.cfg.Store,
		Restore: op.Restore, Log: log,
		Fail:    t.fail,
		Reserve: t.reserve,
	}
	rt.Exec = func(work func(context.Context), then func()) {
		if t.phase >= closing {
			return
		}
		t.execs++
		t.exec(op.Name, work, returned{then: then})
	}
	if t.cfg.Counter != nil {
		rt.Counter = func(name string) *operator.Counter { return t.cfg.Counter(op.Name, name) }
	}
	return rt
}

// exec runs work on the executor. A panic there ends the attempt like one on
// the subtask's goroutine.
func (t *Task) exec(name string, work func(context.Context), r returned) {
	t.cfg.Exec.Go(func(ctx context.Context) {
		defer func() {
			if p := recover(); p != nil {
				r.panicked = &PanicError{Operator: name, Value: p, Stack: debug.Stack()}
			}
			t.Deliver(r)
		}()
		work(ctx)
	})
}

// back handles work that has returned.
func (t *Task) back(r returned) {
	if r.write {
		t.writes--
	} else {
		t.execs--
	}
	if r.panicked != nil {
		t.fail(r.panicked)
	}
	if r.then != nil && (r.write || t.phase < closing) {
		r.then()
	}
}

func (t *Task) reserve(r []operator.Reservation, done func(error)) {
	t.reserveNext++
	t.reserves = append(t.reserves, reserve{t.reserveNext, done})
	t.cfg.Lead.Reserve(t.cfg.ID, t.cfg.Epoch, t.reserveNext, r)
}

// reserved handles the answer to a reservation.
func (t *Task) reserved(m Reserved) {
	i := slices.IndexFunc(t.reserves, func(r reserve) bool { return r.token == m.Token })
	if i < 0 {
		t.log.Warn("answer to an unknown reservation", "token", m.Token)
		return
	}
	done := t.reserves[i].done
	t.reserves = slices.Delete(t.reserves, i, i+1)
	done(m.Err)
}

// PanicError is a panic of user code or of ours, caught in a subtask.
type PanicError struct {
	Operator string
	Record   string // in hand, if known
	Value    any
	Stack    []byte
}

func (e *PanicError) Error() string {
	s := fmt.Sprintf("operator %q", e.Operator)
	if e.Record != "" {
		s += ", " + e.Record
	}
	return fmt.Sprintf("%s: panic: %v\n%s", s, e.Value, e.Stack)
}

// Unwrap returns what was panicked with, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// panicked makes an error of a panic on the subtask's goroutine. To blame is
// who is deepest in the chain with a record in hand: edges are behind the tail.
func (t *Task) panicked(p any) error {
	e := &PanicError{Value: p, Stack: debug.Stack()}
	for _, out := range t.cfg.Edges {
		if w, ok := out.(operator.Where); ok {
			if e.Operator, e.Record = w.Where(); e.Record != "" {
				return e
			}
		}
	}
	for i := len(t.cfg.Ops) - 1; i >= 0; i-- {
		if w, ok := t.cfg.Ops[i].Op.(operator.Where); ok {
			if e.Operator, e.Record = w.Where(); e.Record != "" {
				return e
			}
		}
	}
	e.Operator = t.Doing().Operator
	return e
}
