package sim

import (
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/internal/task"
)

// aborts knows of each subtask of an attempt when it was handed the word that a
// checkpoint is aborted. From the step on in which it reads that mail, it must
// not begin the checkpoint any more: its barrier is swallowed when it comes.
//
// A subtask reads one mail a step, and mail before anything else, so some steps
// after the word was handed over it has been read.
type aborts struct {
	ids      []checkpoint.SubtaskID // in the order in which subtasks are driven
	vertex   map[string]string      // of an operator
	steppers map[checkpoint.SubtaskID]*actor
	handed   map[abortedBy]int // steps that the subtask had made
}

type abortedBy struct {
	subtask checkpoint.SubtaskID
	id      checkpoint.ID
}

// readWithin is more steps than a mailbox ever holds mails.
const readWithin = 64

// deploy begins an attempt.
func (a *aborts) deploy(d *cluster.Deployment) {
	*a = aborts{
		vertex: map[string]string{}, steppers: map[checkpoint.SubtaskID]*actor{}, handed: map[abortedBy]int{},
	}
	for _, v := range d.Job.Plan.Vertices {
		for i := range v.Parallelism {
			a.ids = append(a.ids, checkpoint.SubtaskID{Vertex: v.Name, Index: i})
		}
		for _, n := range v.Nodes {
			a.vertex[d.Job.Specs[n].Meta.Name] = v.Name
		}
	}
}

// driven notes the next subtask that is driven.
func (a *aborts) driven(s *actor) {
	if n := len(a.steppers); n < len(a.ids) {
		a.steppers[a.ids[n]] = s
	}
}

// hand notes a mail that is put into the mailbox of a subtask.
func (a *aborts) hand(s checkpoint.SubtaskID, m task.Mail, now checkpoint.Epoch) {
	if m, ok := m.(checkpoint.Abort); ok && m.Epoch == now && a.steppers[s] != nil {
		k := abortedBy{s, m.ID}
		if _, ok := a.handed[k]; !ok {
			a.handed[k] = a.steppers[s].steps
		}
	}
}

// begins says whether a subtask that takes a snapshot for id has read before
// that it is aborted.
func (a *aborts) begins(operator string, subtask int, id checkpoint.ID) (checkpoint.SubtaskID, bool) {
	s := checkpoint.SubtaskID{Vertex: a.vertex[operator], Index: subtask}
	steps, handed := a.handed[abortedBy{s, id}]
	return s, handed && a.steppers[s].steps > steps+readWithin
}
