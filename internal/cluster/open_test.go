package cluster

import (
	"context"
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
