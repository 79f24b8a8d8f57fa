package cluster

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/staunchdev/staunch/internal/task"
)

// Env is the world a job runs in: goroutines and the clock, or a simulator
// that schedules every piece of work itself.
type Env interface {
	// Now is the processing time in Unix nanoseconds.
	Now() int64
	// Go runs work that may block. It is not called again before Go returned, so
	// a simulator may keep it for later.
	Go(name string, work func())
	// After calls f once, not before d has passed. stop makes it not happen if it
	// has not happened yet.
	After(d time.Duration, f func()) (stop func())
	// Sleep waits inside work that was started by Go.
	Sleep(ctx context.Context, d time.Duration) error
	// Drive steps a subtask until it has closed, then calls closed.
	Drive(s Stepper, closed func())
	// Nonce returns bytes that nobody else will ever be given.
	Nonce() [16]byte
}

// Stepper is a subtask to be driven.
type Stepper interface {
	// Step does one thing and never blocks.
	Step() task.Status
	// Run steps until the subtask has closed, and waits where there is nothing
	// to do.
	Run(ctx context.Context)
}

// realEnv is goroutines, the machine's clock and its entropy.
type realEnv struct{}

// RealEnv returns the world outside of a simulator.
func RealEnv() Env { return realEnv{} }

func (realEnv) Now() int64               { return time.Now().UnixNano() }
func (realEnv) Go(_ string, work func()) { go work() }

func (realEnv) After(d time.Duration, f func()) func() {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

func (realEnv) Drive(s Stepper, closed func()) {
	go func() {
		defer closed()
		s.Run(context.Background()) // the subtask knows its attempt's context
	}()
}

func (realEnv) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (realEnv) Nonce() (b [16]byte) {
	rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return b
}
