package operator

import (
	"context"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

// observer tells a reader that wants to know which positions are committed. It
// calls it off the data path, one call at a time; of what comes meanwhile only
// the newest is told.
type observer struct {
	name    string
	rt      *Runtime
	to      connector.CheckpointObserver // nil: nobody wants to know
	pending []observed                   // snapshots not yet committed, ascending
	calling bool
	next    *observed
}

type observed struct {
	id     checkpoint.ID
	splits []checkpoint.Split
}

func (o *observer) init(name string, rt *Runtime, reader any) {
	o.name, o.rt = name, rt
	o.to, _ = reader.(connector.CheckpointObserver)
}

func (o *observer) remember(id checkpoint.ID, splits []checkpoint.Split) {
	if o.to != nil {
		o.pending = append(o.pending, observed{id, splits})
	}
}

func (o *observer) forget(id checkpoint.ID) {
	for i, p := range o.pending {
		if p.id == id {
			o.pending = append(o.pending[:i:i], o.pending[i+1:]...)
			return
		}
	}
}

func (o *observer) committed(id checkpoint.ID) {
	for len(o.pending) > 0 && o.pending[0].id <= id {
		if o.pending[0].id == id {
			o.next = &observed{id, o.pending[0].splits}
		}
		o.pending = o.pending[1:]
	}
	o.call()
}

func (o *observer) call() {
	if o.calling || o.next == nil {
		return
	}
	p := *o.next
	o.next, o.calling = nil, true
	splits := make([]connector.Split, len(p.splits))
	for i, sp := range p.splits {
		splits[i] = readerSplit(sp)
	}
	var err error
	o.rt.Exec(func(ctx context.Context) {
		err = o.to.Committed(ctx, connector.CheckpointID(p.id), splits)
	}, func() {
		if err != nil {
			o.rt.Log.Warn("reader could not take note of a committed checkpoint", "operator", o.name, "checkpoint", p.id, "err", err)
		}
		o.calling = false
		o.call()
	})
}
