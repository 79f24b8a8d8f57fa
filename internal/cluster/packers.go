package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/statefile"
	"github.com/staunchdev/staunch/storage"
)

// packers gives all subtasks of this process the packer of a checkpoint, so
// that their runs share objects and syncs.
type packers struct {
	ctx    context.Context
	store  storage.Store
	name   func(checkpoint.ID) string
	nonce  func() [16]byte
	seal   time.Duration
	mu     sync.Mutex
	packer map[checkpoint.ID]*statefile.Packer
	floor  checkpoint.ID // ids at or below are decided
	closed bool
}

func newPackers(x *Execution, a *attempt) *packers {
	return &packers{
		ctx: a.ctx, store: x.opt.Store, nonce: x.env.Nonce, seal: x.opt.SealAfter,
		packer: map[checkpoint.ID]*statefile.Packer{},
		name:   func(id checkpoint.ID) string { return x.objectName(a, id) },
	}
}

// Packer returns a subtask's handle of the packer of a checkpoint.
func (p *packers) Packer(id checkpoint.ID) *statefile.Packer {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.packer[id]
	if k == nil {
		k = statefile.NewPacker(p.ctx, p.store, statefile.Options{
			Name: func() string { return p.name(id) }, ID: p.nonce, SealAfter: p.seal,
		})
		p.packer[id] = k
		if p.closed || id <= p.floor {
			k.Abort() // late for a decided checkpoint: what is written is nobody's
		}
	}
	return k.Subtask()
}

// forget drops the packers of completed checkpoints: their objects are sealed.
func (p *packers) forget(id checkpoint.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.floor = max(p.floor, id)
	for old := range p.packer {
		if old <= id {
			delete(p.packer, old)
		}
	}
}

// abort gives up what is unsealed of an aborted checkpoint. It may wait for a
// seal that has begun, so it does not run in the leader's loop.
func (p *packers) abort(env Env, id checkpoint.ID) {
	p.mu.Lock()
	k := p.packer[id]
	p.mu.Unlock()
	if k != nil {
		env.Go("abort packer", k.Abort)
	}
}

// close drops everything: the attempt is over and nothing of it runs.
func (p *packers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for id, k := range p.packer {
		k.Abort()
		delete(p.packer, id)
	}
}
