package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
)

// bank is the outside system that the sinks write to. It survives every crash
// of the job, has transactions that are staged, prepared and then committed or
// dropped, and never forgets what became of one.
type bank struct {
	w     *world
	txs   map[string]*transaction
	order []*transaction
	owner *process // who holds the lock of the job
}

type transaction struct {
	id       string
	sink     string
	epoch    [2]uint64 // generation, attempt
	lineage  uint64
	prepared checkpoint.ID // the checkpoint that it was first prepared for
	state    txState
	entries  []entry
}

type txState uint8

const (
	staged txState = iota
	prepared
	committed
	dropped
)

// entry is a record that a sink wrote: of the ledger, or of the totals.
type entry struct {
	line  line
	total total
	of    byte // 'l', 't', or 'j' for the order alone
}

func newBank(w *world) *bank { return &bank{w: w, txs: map[string]*transaction{}} }

// call is what every call of the bank begins with.
func (b *bank) call(p *process) {
	if p.over {
		b.w.fail("%v has ended, and calls the bank", p)
	}
	b.w.calls++
	p.yield()
	if !b.w.calm && once(&b.w.crashBank, b.w.calls) {
		p.doomed = true
		if b.w.rng.IntN(2) == 0 {
			p.yield() // dies before the call has any effect
		}
	}
	if p.bankCut && p.outageUntil > b.w.now && p.cur != nil {
		p.Sleep(context.Background(), time.Duration(b.w.rng.Int64N(2*(p.outageUntil-b.w.now))))
	}
	if b.w.happens(b.w.bankSlow) {
		p.Sleep(context.Background(), time.Duration(b.w.rng.Int64N(3*int64(b.w.interval))))
	}
}

// commit commits one transaction, and says nothing of the reply.
func (b *bank) commit(p *process, id string) error {
	t := b.txs[id]
	switch {
	case t == nil:
		b.w.fail("%v commits transaction %s, which was never begun", p, id)
	case t.state == committed:
		return nil
	case t.state == prepared:
		t.state = committed
		p.commits++
		b.order = append(b.order, t)
		b.w.tracef("%v: %s is committed, %d entries", p, id, len(t.entries))
		return nil
	default:
		b.w.fail("LOST: %v commits transaction %s, which was %s", p, id, [...]string{"only staged", "", "", "dropped"}[t.state])
	}
	return connector.ErrLost
}

// writer is a connector.Writer of the bank.
type writer[T any] struct {
	p      *process
	b      *bank
	i      connector.Instance
	entry  func(T) entry
	tx     *transaction
	n      int
	failed bool
}

func (wr *writer[T]) Write(_ context.Context, batch connector.Batch[T]) error {
	wr.b.call(wr.p)
	if wr.tx == nil {
		wr.n++
		i := wr.i
		wr.tx = &transaction{
			id:   fmt.Sprintf("%s-L%d-G%d-A%d-%d-%d", i.Operator, i.Lineage, i.Generation, i.Attempt, i.Subtask, wr.n),
			sink: i.Operator, epoch: [2]uint64{i.Generation, i.Attempt}, lineage: i.Lineage,
		}
		if wr.b.txs[wr.tx.id] != nil {
			wr.b.w.fail("%v begins transaction %s a second time", wr.p, wr.tx.id)
		}
		wr.b.txs[wr.tx.id] = wr.tx
	}
	for _, v := range batch.Values {
		wr.tx.entries = append(wr.tx.entries, wr.entry(v))
	}
	return nil
}

func (wr *writer[T]) Prepare(_ context.Context, id connector.CheckpointID) ([]connector.Committable, error) {
	if wr.tx == nil {
		return nil, nil
	}
	wr.b.call(wr.p)
	if w := wr.b.w; w.slowJournal && !w.calm && wr.tx.sink == "journal" && w.rng.IntN(3) == 0 {
		wr.p.Sleep(context.Background(), time.Duration(w.rng.Int64N(int64(1200*time.Millisecond))))
	}
	if wr.failed || wr.b.w.happens(wr.b.w.prepareFails) {
		if !wr.failed && wr.b.w.rng.IntN(2) == 0 && wr.tx.state == staged {
			wr.tx.state = prepared
		}
		wr.failed = true // nothing that this writer holds will ever be durable
		return nil, errInjected
	}
	t := wr.tx
	wr.tx = nil
	if t.state != staged { // a newer attempt has dropped it
		return nil, fmt.Errorf("transaction %s was dropped", t.id)
	}
	t.state, t.prepared = prepared, checkpoint.ID(id)
	wr.p.yield()
	return []connector.Committable{{ID: t.id}}, nil
}

func (wr *writer[T]) Close() error { return nil }

// committer is the connector.Committer of one sink.
type committer struct {
	p    *process
	b    *bank
	sink string
}

func (c committer) Commit(_ context.Context, cs []connector.Committable) error {
	for _, t := range cs {
		c.b.call(c.p)
		if w := c.b.w; w.happens(w.slowCommit) {
			c.p.Sleep(context.Background(), time.Duration(w.rng.Int64N(int64(w.commitTime))))
		}
		fails := c.b.w.happens(c.b.w.commitFails) || c.p.bankCut && c.p.outageUntil > c.b.w.now
		if fails && c.b.w.rng.IntN(2) == 0 {
			return errInjected // before it had any effect
		}
		if err := c.b.commit(c.p, t.ID); err != nil {
			return err
		}
		if fails {
			return errInjected // the reply was lost
		}
	}
	c.p.yield()
	return nil
}

// Recover commits what is pending, and drops what older attempts left.
func (c committer) Recover(ctx context.Context, i connector.Instance, pending []connector.Committable) error {
	if err := c.Commit(ctx, pending); err != nil {
		return err
	}
	c.b.call(c.p)
	epoch := [2]uint64{i.Generation, i.Attempt}
	for _, t := range c.b.txs {
		if t.sink == c.sink && t.state != committed && less(t.epoch, epoch) {
			t.state = dropped
		}
	}
	return nil
}

// Renew implements connector.Renewer: what was committed stays where it is.
func (c committer) Renew(context.Context, connector.Instance) (string, error) {
	c.b.call(c.p)
	if c.b.w.happens(c.b.w.commitFails) {
		return "", errInjected
	}
	c.b.w.audit.look()
	if ids := c.b.w.audit.uncommitted; len(ids) > 0 && c.b.w.audit.owner() == c.p.String() {
		c.b.w.fail("%v sets the output of sink %s aside, but checkpoints %d are not committed", c.p, c.sink, ids)
	}
	c.p.renewed[c.sink] = true
	return "it is left behind", nil
}

func less(a, b [2]uint64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// lock is the lock of the job that a living owner holds.
func (b *bank) lock(p *process) (release func(), err error) {
	p.yield()
	if b.owner != nil {
		return nil, fmt.Errorf("%v lives", b.owner)
	}
	b.owner = p
	return func() { b.unlock(p) }, nil
}

func (b *bank) unlock(p *process) {
	if b.owner == p {
		b.owner = nil
	}
}

var errInjected = errors.New("injected fault")
