package statefile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/staunchdev/staunch/storage"
)

// ErrAborted says that the checkpoint was given up before the run was durable.
var ErrAborted = errors.New("statefile: packer was aborted")

// What may go inline into a manifest, in bytes.
const (
	InlineRun     = 4 << 10
	InlineSubtask = 64 << 10
	InlinePacker  = 1 << 20
)

// Options configure a Packer.
type Options struct {
	// Name and ID name a new object, never the same one twice. They are called
	// one at a time.
	Name func() string
	ID   func() [16]byte

	// ObjectBytes is the size from which on an object takes no further run;
	// 0: 64 MiB.
	ObjectBytes int64

	// SealAfter is how long a finished run waits for others to share its object
	// and its sync. At 0 there is neither a timer nor a goroutine: whoever waits
	// for a run seals its object. Then each handle is used by one goroutine at a
	// time, and shares no object with another.
	SealAfter time.Duration

	// AfterFunc starts the timer of SealAfter; nil: time.AfterFunc.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
}

// Packer puts the runs of one process and one attempt at a checkpoint into
// objects. It is a handle: each subtask takes its own by Subtask, all of them
// work on the same objects and may be used at the same time.
//
//  1. A run lies in one object, without a gap. While it streams nobody else
//     writes to that object.
//  2. A run waits for no other subtask's stream: objects into which runs stream
//     belong to one handle; runs that are written in one piece share objects.
//  3. A run is durable once its object is sealed. If anything fails before, every
//     run in the object fails.
//  4. After Abort nothing is sealed any more, but a seal that had begun may
//     still make its object visible.
type Packer struct {
	*packing
	inline int // bytes this handle has put inline; under packing.mu
}

// packing is what the handles of a Packer share.
type packing struct {
	ctx   context.Context
	store storage.Store
	o     Options

	mu       sync.Mutex
	released sync.Cond // an object is no longer busy
	objects  []*object // open ones: free or busy
	inlined  int
	err      error // set by Abort

	seals sync.WaitGroup // goroutines that seal
}

// NewPacker returns the first handle of a packer. The context is that of all
// writing.
func NewPacker(ctx context.Context, store storage.Store, o Options) *Packer {
	if o.ObjectBytes <= 0 {
		o.ObjectBytes = 64 << 20
	}
	if o.AfterFunc == nil {
		o.AfterFunc = func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	}
	p := &packing{ctx: ctx, store: store, o: o}
	p.released.L = &p.mu
	return &Packer{packing: p}
}

// Subtask returns another handle, with an inline budget of its own.
func (p *Packer) Subtask() *Packer { return &Packer{packing: p.packing} }

// reserveInline says whether a run of n bytes may go inline, and counts it.
func (p *Packer) reserveInline(n int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || n > InlineRun || p.inline+n > InlineSubtask || p.inlined+n > InlinePacker {
		return false
	}
	p.inline += n
	p.inlined += n
	return true
}

// take returns an object that the caller alone may write to until it calls
// release or drop. A whole run is written in one piece, any other one streams.
func (p *Packer) take(whole bool) (*object, error) {
	p.mu.Lock()
	share := whole && p.o.SealAfter > 0
	for {
		if p.err != nil {
			p.mu.Unlock()
			return nil, p.err
		}
		var free *object
		wait := false
		for _, o := range p.objects {
			switch {
			case o.owner == p && o.state == idle:
				free = o
			case share && o.owner == nil && o.state == idle && free == nil:
				free = o
			case share && o.owner == nil && o.state == busy:
				wait = true
			}
		}
		if free != nil {
			free.state = busy
			if free.owner != nil {
				free.stopTimer()
			}
			p.mu.Unlock()
			return free, nil
		}
		// Whole runs are short: sharing an object is worth the wait.
		if !wait {
			break
		}
		p.released.Wait()
	}
	o := &object{name: p.o.Name(), id: p.o.ID(), state: busy, sealed: make(chan struct{})}
	if !share {
		o.owner = p
	}
	p.objects = append(p.objects, o)
	p.mu.Unlock()

	if err := p.open(o); err != nil {
		p.drop(o, err)
		return nil, err
	}
	return o, nil
}

// open begins the object in the store.
func (p *packing) open(o *object) error {
	w, err := p.store.Write(p.ctx, o.name)
	if err != nil {
		return fmt.Errorf("begin state object %s: %w", o.name, err)
	}
	o.w = w
	return p.write(o, appendObjectHeader(nil, o.id))
}

// write writes to an object that the caller has taken.
func (p *packing) write(o *object, b []byte) error {
	p.mu.Lock()
	err := p.err
	p.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := o.w.Write(b); err != nil {
		return fmt.Errorf("write state object %s: %w", o.name, err)
	}
	o.size += int64(len(b))
	return nil
}

// release gives an object back. Run says that a run in it was finished, else
// one was given up, whose bytes stay in the object and belong to nobody.
func (p *packing) release(o *object, run bool) {
	p.mu.Lock()
	if o.state == dead { // aborted meanwhile
		p.mu.Unlock()
		o.w.Abort()
		return
	}
	if run {
		o.runs++
	}
	switch {
	case o.runs == 0:
		p.mu.Unlock()
		p.drop(o, ErrAborted)
		return
	case o.sealNext || o.size >= p.o.ObjectBytes:
		p.beginSeal(o)
		if p.o.SealAfter > 0 {
			p.seals.Go(func() { p.seal(o) })
			break
		}
		p.mu.Unlock()
		p.seal(o)
		return
	default:
		o.state = idle
		p.startTimer(o)
	}
	p.released.Broadcast()
	p.mu.Unlock()
}

// drop gives an object up with all runs in it. The caller has taken it.
func (p *packing) drop(o *object, err error) {
	p.mu.Lock()
	if o.state != dead {
		p.forget(o)
		o.fail(err)
	}
	p.released.Broadcast()
	p.mu.Unlock()
	if o.w != nil {
		o.w.Abort()
	}
}

// forget takes an object off the open ones.
func (p *packing) forget(o *object) {
	o.stopTimer()
	if i := slices.Index(p.objects, o); i >= 0 {
		p.objects = slices.Delete(p.objects, i, i+1)
	}
}

// Flush seals every object that no run is being written to, and has the others
// sealed as soon as their run ends. It returns when the free ones are durable.
func (p *Packer) Flush() error {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return p.err
	}
	var free []*object
	for _, o := range slices.Clone(p.objects) {
		if o.state == busy {
			o.sealNext = true
			continue
		}
		p.beginSeal(o)
		free = append(free, o)
	}
	p.mu.Unlock()
	var errs []error
	for _, o := range free {
		errs = append(errs, p.seal(o))
	}
	return errors.Join(errs...)
}

// Abort gives up all objects that are not sealed: their runs fail, with those
// still being written. It returns when no goroutine of the packer is left,
// which takes as long as a seal that had begun. It ends every packer, also one
// whose runs are all durable: what was given up halfway may hold a writer.
func (p *Packer) Abort() {
	p.mu.Lock()
	if p.err == nil {
		p.err = ErrAborted
	}
	var free []*object
	for _, o := range p.objects {
		if o.state == idle {
			free = append(free, o)
		}
		o.stopTimer()
		o.fail(ErrAborted) // who holds a busy one drops its writer
	}
	p.objects = nil
	p.released.Broadcast()
	p.mu.Unlock()
	for _, o := range free {
		o.w.Abort()
	}
	p.seals.Wait()
}
