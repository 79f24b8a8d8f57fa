package statefile

import (
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
)

// object is one object being filled. Who has taken it writes w and size; the
// rest is guarded by packing.mu. It is idle or busy while it is open, then
// sealing (its content is complete) or dead.
type object struct {
	name  string
	id    [16]byte
	owner *Packer // nil: shared by the runs that are written in one piece

	w    storage.Writer
	size int64

	state    objectState
	runs     int  // finished ones in it
	sealNext bool // seal it as soon as it is released

	stop  func() bool // of the running timer; nil: none runs
	timer int         // number of the running timer, so that a late one is seen

	sealed chan struct{} // closed when it is durable or has failed
	err    error         // valid once sealed is closed
}

type objectState uint8

const (
	idle objectState = iota
	busy
	sealing
	dead
)

// fail gives the object up: its runs are told at once.
func (o *object) fail(err error) {
	o.state, o.err = dead, err
	close(o.sealed)
}

func (o *object) stopTimer() {
	if o.stop != nil {
		o.stop()
		o.stop = nil
		o.timer++
	}
}

// startTimer starts the timer after which an object is sealed, unless it runs.
// In an object of one handle it is stopped whenever the handle goes on; in a
// shared one it is not, so that the first run waits no longer for the others.
func (p *packing) startTimer(o *object) {
	if p.o.SealAfter <= 0 || o.stop != nil {
		return
	}
	number := o.timer
	o.stop = p.o.AfterFunc(p.o.SealAfter, func() { p.expired(o, number) })
}

func (p *packing) expired(o *object, number int) {
	p.mu.Lock()
	if o.stop == nil || o.timer != number || o.state > busy {
		p.mu.Unlock()
		return
	}
	o.stop = nil
	o.timer++
	if o.state == busy {
		o.sealNext = true
		p.mu.Unlock()
		return
	}
	p.beginSeal(o)
	p.seals.Add(1) // under mu and with the object open: before Abort waits
	p.mu.Unlock()
	defer p.seals.Done()
	p.seal(o)
}

// beginSeal takes the object out of use; the caller must seal it.
func (p *packing) beginSeal(o *object) {
	p.forget(o)
	o.state = sealing
}

// seal makes the object durable and tells its runs.
func (p *packing) seal(o *object) error {
	err := o.w.Commit()
	if err != nil {
		o.w.Abort()
		err = fmt.Errorf("seal state object %s: %w", o.name, err)
	}
	o.err = err
	close(o.sealed)
	return err
}

// handle is how a manifest names the object.
func (o *object) handle() checkpoint.Object {
	return checkpoint.Object{Name: o.name, ID: o.id, Size: o.size}
}
