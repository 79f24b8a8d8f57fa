package cluster

import (
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// wishes are the checkpoints that users have asked for. One asked for while
// subtasks are opening, or while another checkpoint is pending, waits: whoever
// asks wants one that begins afterwards.
type wishes struct {
	waiting []func(checkpoint.ID, error)
	asked   string // token of the request that the coordinator has; empty: none
	tokens  int
	busy    bool // refused because a checkpoint is pending; asked again when one ends
	begun   map[checkpoint.ID][]func(checkpoint.ID, error)
}

// request asks for a checkpoint; then is told when it has completed or failed.
func (x *Execution) request(then func(checkpoint.ID, error)) {
	x.wishes.waiting = append(x.wishes.waiting, then)
	if x.att != nil {
		x.wish(x.att)
	}
}

// wish tells the coordinator of what waits, once it can be triggered.
func (x *Execution) wish(a *attempt) {
	w := &x.wishes
	if len(w.waiting) == 0 || w.asked != "" || w.busy || a.coord == nil || a.ending || a.telling || a.ready < len(a.subtasks) {
		return
	}
	w.tokens++
	w.asked = fmt.Sprint("wish-", w.tokens)
	x.tell(a, checkpoint.TriggerRequested{Token: w.asked})
}

func (w *wishes) triggered(token string, id checkpoint.ID) {
	if token != w.asked {
		return
	}
	if w.begun == nil {
		w.begun = map[checkpoint.ID][]func(checkpoint.ID, error){}
	}
	w.begun[id], w.waiting, w.asked = w.waiting, nil, ""
}

func (w *wishes) refused(r checkpoint.Refused) {
	if r.Token != w.asked {
		return
	}
	w.asked = ""
	if r.Reason == checkpoint.Busy {
		w.busy = true
		return
	}
	w.fail(fmt.Errorf("no checkpoint: %v: %s", r.Reason, r.Detail))
}

// ended answers those whose checkpoint has completed or failed.
func (w *wishes) ended(s checkpoint.Stats) {
	w.busy = false
	for _, then := range w.begun[s.ID] {
		if s.Failure != nil {
			then(s.ID, fmt.Errorf("checkpoint %d: %v", s.ID, s.Failure))
		} else {
			then(s.ID, nil)
		}
	}
	delete(w.begun, s.ID)
	if s.Kind == checkpoint.Final && s.Failure == nil {
		// Nothing comes behind it, so it is what those that still wait would get.
		waiting := w.waiting
		w.waiting, w.asked = nil, ""
		for _, then := range waiting {
			then(s.ID, nil)
		}
	}
}

// fail answers those that still wait.
func (w *wishes) fail(err error) {
	waiting := w.waiting
	w.waiting, w.asked, w.busy = nil, "", false
	for _, then := range waiting {
		then(0, err)
	}
}
