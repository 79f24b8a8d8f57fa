package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/staunchdev/staunch/internal/graph"
	"github.com/staunchdev/staunch/storage/memstore"
)

// A job that is stopped while it starts may be about to take the lock: it ends
// only when that is decided, and gives the lock back.
func TestStopWhileTheLockIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		asked, taken, released := make(chan struct{}), make(chan struct{}), false
		x := Start(ctx, Job{Name: "job", Plan: &graph.Plan{}}, Options{
			Store: memstore.NewDisk().Open(),
			Lock: func() (func(), error) {
				close(asked)
				<-taken
				return func() { released = true }, nil
			},
		})
		<-asked
		cancel()
		synctest.Wait()
		close(taken)
		if _, err := x.Wait(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !released {
			t.Error("the job has ended and keeps its lock")
		}
	})
}

// What a start finds out when it is stopped already is an error all the same;
// only the end of its context is none. A job that ended before it read anything
// claims no records.
//
// Red: open looked at stopping before it looked at the error.
func TestErrorOfAStartThatIsStopped(t *testing.T) {
	damaged := errors.New("damaged")
	for _, tt := range []struct {
		name string
		hold error // what taking the lock comes to, once the job was stopped
		want error // nil: no error
	}{
		{"held", errors.New("process 7 has it"), ErrLocked},
		{"broken", damaged, damaged},
		{"cancelled", context.Canceled, nil},
		{"taken", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				taken := make(chan struct{})
				x := Start(ctx, Job{Name: "job", Plan: &graph.Plan{}}, Options{
					Store: memstore.NewDisk().Open(),
					Lock:  func() (func(), error) { <-taken; return func() {}, tt.hold },
				})
				synctest.Wait()
				cancel()
				synctest.Wait()
				close(taken)
				r, err := x.Wait()
				if !errors.Is(err, tt.want) || r.Records != nil {
					t.Errorf("%v, records %v, want %v and no records", err, r.Records, tt.want)
				}
				synctest.Wait()
			})
		})
	}
}
