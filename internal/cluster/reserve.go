package cluster

import (
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/task"
)

// reserveQueue gathers what sources ask for while a Reserve record is on its
// way: the next record carries all of it.
type reserveQueue struct {
	busy    bool
	waiting []ckptlog.Reservation
	asked   []reserveRequest
}

type reserveRequest struct {
	subtask checkpoint.SubtaskID
	token   uint64
}

// reserve appends a reservation and answers the subtask when it is in the log.
func (x *Execution) reserve(a *attempt, s checkpoint.SubtaskID, token uint64, rs []operator.Reservation) {
	for _, r := range rs {
		a.reserves.waiting = append(a.reserves.waiting, ckptlog.Reservation{Source: r.Operator, Split: r.Split, N: r.End.N, State: r.End.State})
	}
	a.reserves.asked = append(a.reserves.asked, reserveRequest{s, token})
	x.nextReserve(a)
}

func (x *Execution) nextReserve(a *attempt) {
	q := &a.reserves
	if q.busy || len(q.asked) == 0 || a.ending {
		return
	}
	asked, splits := q.asked, q.waiting
	q.asked, q.waiting, q.busy = nil, nil, true
	x.appendRecord(ckptlog.Reserve{Splits: splits}, func(err error) {
		q.busy = false
		for _, r := range asked {
			x.deliver(a, r.subtask, task.Reserved{Token: r.token, Err: err})
		}
		x.nextReserve(a)
	})
}
