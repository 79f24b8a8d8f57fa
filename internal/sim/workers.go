package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/task"
)

// workers are the real workers of a process, with messages between them and the
// leader that are late, doubled, lost or of an attempt that is over.
type workers struct {
	cluster.Workers
	p       *process
	queues  map[checkpoint.SubtaskID]*slowQueue
	sources map[string]bool // vertices
}

// staleMail is kept to be sent again in a later attempt.
type staleMail struct {
	to checkpoint.SubtaskID
	m  task.Mail
}

func (ws *workers) Deploy(d *cluster.Deployment) error {
	ws.queues, ws.sources = map[checkpoint.SubtaskID]*slowQueue{}, map[string]bool{}
	for _, v := range d.Job.Plan.Vertices {
		ws.sources[v.Name] = d.Job.Plan.Graph.Nodes[v.Nodes[0]].Source != nil
	}
	ws.p.givenUp.deploy(d)
	l := &lead{Lead: d.Lead, p: ws.p}
	for _, a := range ws.p.staleAcks {
		ws.p.later(func() { l.Lead.Ack(a) })
	}
	ws.p.staleAcks = nil
	c := *d
	c.Lead = l
	return ws.Workers.Deploy(&c)
}

func (ws *workers) Deliver(s checkpoint.SubtaskID, m task.Mail) {
	p, w := ws.p, ws.p.w
	if w.Trace != nil {
		w.tracef("%v: mail to %v: %T%v", p, s, m, m)
	}
	if t, ok := m.(checkpoint.Trigger); ok && t.Barrier.Kind == checkpoint.Final && w.mayStop(6) {
		p.stopSoon(200 * w.stepCost)
	}
	if _, ok := m.(checkpoint.Complete); ok && w.happens(w.loseComplete) {
		p.lostMail = true
		return
	}
	if epochOf(m) != (checkpoint.Epoch{}) {
		if len(p.stale) < 8 && w.happens(w.staleMail) {
			p.stale = append(p.stale, staleMail{s, m})
		}
		if len(p.stale) > 0 && epochOf(p.stale[0].m) != p.epoch && w.happens(w.staleMail) {
			ws.Workers.Deliver(p.stale[0].to, p.stale[0].m)
			p.stale = p.stale[1:]
		}
	}
	ws.slowly(s, m)
}

// slowly delivers in order, at times after a while: then what goes through the
// channels overtakes the mail.
func (ws *workers) slowly(s checkpoint.SubtaskID, m task.Mail) {
	w := ws.p.w
	if q := ws.queues[s]; q != nil {
		q.mails = append(q.mails, m)
		return
	}
	slow := w.slowMail
	switch m.(type) {
	case checkpoint.Abort:
		slow = (slow + 9) / 10
	case checkpoint.Complete:
		if w.slowWord != 0 {
			slow = w.slowWord
		}
	}
	if _, ok := m.(checkpoint.Trigger); !ok && w.slowWord != 0 && ws.sources[s.Vertex] {
		slow = 0 // else the next trigger would wait behind it, and no barrier come first
	}
	if !w.happens(slow) {
		ws.hand(s, m)
		if m, ok := m.(checkpoint.Trigger); ok {
			ws.triggered(m.Barrier.ID)
		}
		return
	}
	q := &slowQueue{mails: []task.Mail{m}, barrier: w.rng.IntN(2) == 0}
	ws.queues[s] = q
	if m, ok := m.(checkpoint.Complete); ok && w.slowWord != 0 {
		q.barrier, q.next = false, m.ID+2
	}
	ws.p.After(time.Duration(w.rng.Int64N(int64(w.mailTime))), func() { ws.arrive(s, q) })
}

// slowQueue is mail to one subtask that is on its way.
type slowQueue struct {
	mails   []task.Mail
	barrier bool          // it comes about when the next barrier does
	next    checkpoint.ID // it comes about when the barrier of this one does
}

// triggered has mail arrive while a barrier is on its way.
func (ws *workers) triggered(id checkpoint.ID) {
	for _, v := range slices.SortedFunc(maps.Keys(ws.queues), func(a, b checkpoint.SubtaskID) int {
		return cmp.Or(cmp.Compare(a.Vertex, b.Vertex), cmp.Compare(a.Index, b.Index))
	}) {
		if q := ws.queues[v]; q.barrier || q.next == id {
			q.barrier, q.next = false, 0
			ws.p.After(time.Duration(ws.p.w.rng.Int64N(200*ws.p.w.stepCost)), func() { ws.arrive(v, q) })
		}
	}
}

func (ws *workers) arrive(s checkpoint.SubtaskID, q *slowQueue) {
	if ws.queues[s] != q {
		return // it has arrived, or is of an attempt that is over
	}
	delete(ws.queues, s)
	for _, m := range q.mails {
		ws.hand(s, m)
	}
}

// hand puts a mail into the mailbox of a subtask.
func (ws *workers) hand(s checkpoint.SubtaskID, m task.Mail) {
	ws.p.givenUp.hand(s, m, ws.p.epoch)
	ws.Workers.Deliver(s, m)
}

func epochOf(m task.Mail) checkpoint.Epoch {
	switch m := m.(type) {
	case checkpoint.Trigger:
		return m.Epoch
	case checkpoint.Complete:
		return m.Epoch
	case checkpoint.Abort:
		return m.Epoch
	case checkpoint.Committed:
		return m.Epoch
	}
	return checkpoint.Epoch{}
}

// lead is the way back: what subtasks tell the leader.
type lead struct {
	task.Lead
	p *process
}

func (l *lead) Ack(a checkpoint.Ack) {
	w := l.p.w
	if w.Trace != nil {
		w.tracef("%v: %v acks %d", l.p, a.Subtask, a.ID)
	}
	if len(l.p.staleAcks) < 8 && w.happens(w.staleMail) {
		l.p.staleAcks = append(l.p.staleAcks, a)
	}
	if w.happens(w.doubleAck) {
		l.p.later(func() { l.Lead.Ack(a) })
	}
	if w.happens(w.loseAck) {
		return
	}
	if w.happens(w.lateAck) {
		l.p.later(func() { l.Lead.Ack(a) })
		return
	}
	l.Lead.Ack(a)
}

func (l *lead) Decline(d checkpoint.Decline) {
	l.p.w.tracef("%v: %v declines %d: %v %s", l.p, d.Subtask, d.ID, d.Reason, d.Detail)
	l.p.oldDecline = func() { l.Lead.Decline(d) }
	if l.p.w.happens(l.p.w.lateAck / 4) {
		l.p.later(func() { l.Lead.Decline(d) })
		return
	}
	l.Lead.Decline(d)
}

func (l *lead) Ended(s checkpoint.SubtaskID, e checkpoint.Epoch) {
	l.p.w.tracef("%v: %v has ended", l.p, s)
	l.Lead.Ended(s, e)
}

func (l *lead) Failed(s checkpoint.SubtaskID, e checkpoint.Epoch, err error) {
	l.p.w.tracef("%v: %v has failed: %v", l.p, s, err)
	l.Lead.Failed(s, e, err)
}

func (l *lead) Reserve(s checkpoint.SubtaskID, e checkpoint.Epoch, token uint64, r []operator.Reservation) {
	l.p.w.tracef("%v: %v reserves %v", l.p, s, r)
	l.Lead.Reserve(s, e, token, r)
}

// later calls f after a while.
func (p *process) later(f func()) {
	p.After(time.Duration(p.w.rng.Int64N(2*int64(p.w.interval))), f)
}
