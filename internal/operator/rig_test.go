package operator

import (
	"context"
	"log/slog"
	"testing"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

// rig is a runtime whose executor and clock belong to the test.
type rig struct {
	now    int64
	work   []func(context.Context)
	then   []func()
	failed []error
	rt     *Runtime
}

func newRig(t *testing.T, mode checkpoint.Mode) *rig {
	r := &rig{now: 1}
	r.rt = &Runtime{
		Instance: connector.Instance{Operator: "op", Parallelism: 1}, Context: t.Context(), Mode: mode,
		Now: func() int64 { return r.now }, Log: slog.New(slog.DiscardHandler),
		Fail: func(err error) { r.failed = append(r.failed, err) },
		Exec: func(work func(context.Context), then func()) {
			r.work, r.then = append(r.work, work), append(r.then, then)
		},
	}
	return r
}

// run runs the oldest piece of work.
func (r *rig) run() bool {
	if len(r.work) == 0 {
		return false
	}
	work, then := r.work[0], r.then[0]
	r.work, r.then = r.work[1:], r.then[1:]
	work(context.Background())
	then()
	return true
}

func (r *rig) runAll() {
	for r.run() {
	}
}
