package cluster

import (
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
)

// lead carries what subtasks say into the leader's loop.
type lead struct {
	x *Execution
	a *attempt
}

func (l lead) Ready(s checkpoint.SubtaskID, e checkpoint.Epoch) {
	l.post(e, func() { l.x.tell(l.a, checkpoint.SubtaskReady{Subtask: s}) })
}

func (l lead) Ack(k checkpoint.Ack) {
	l.post(k.Epoch, func() { l.x.tell(l.a, checkpoint.Acked{Ack: k}) })
}

func (l lead) Decline(d checkpoint.Decline) {
	l.post(d.Epoch, func() {
		l.x.tellFailure(l.a, d.ID, d.ID == l.a.final, checkpoint.DeclinedBy{Decline: d})
	})
}

func (l lead) Ended(s checkpoint.SubtaskID, e checkpoint.Epoch) {
	l.post(e, func() { l.x.tell(l.a, checkpoint.SubtaskEnded{Subtask: s}) })
}

func (l lead) Failed(s checkpoint.SubtaskID, e checkpoint.Epoch, err error) {
	l.post(e, func() { l.x.subtaskFailed(l.a, s, err) })
}

func (l lead) Reserve(s checkpoint.SubtaskID, e checkpoint.Epoch, token uint64, r []operator.Reservation) {
	l.post(e, func() { l.x.reserve(l.a, s, token, r) })
}

// post drops what an older attempt says: its acks, its failures.
func (l lead) post(e checkpoint.Epoch, f func()) {
	l.x.in.post(func() {
		if l.x.att == l.a && e == l.a.epoch {
			f()
		}
	})
}
