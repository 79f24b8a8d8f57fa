package cluster

import (
	"context"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/task"
)

// Workers run the subtasks of one attempt at a time.
type Workers interface {
	// Deploy makes and starts every subtask. It does not block.
	Deploy(d *Deployment) error
	// Deliver sends mail to a subtask. Mail to one subtask arrives in order; mail
	// to a subtask that is gone is dropped.
	Deliver(s checkpoint.SubtaskID, m task.Mail)
	// Kill stops all subtasks of the attempt; Deployment.Stopped is called once
	// none of them, and nothing they started, runs any more.
	Kill(cause error)
	// Stuck describes the subtasks that have not stopped after Kill.
	Stuck() []string
}

// Deployment is what workers need to run an attempt.
type Deployment struct {
	Job      *Job
	Options  *Options
	Epoch    checkpoint.Epoch
	Lineage  uint64
	Restored checkpoint.ID // 0: started empty
	HashSeed uint64
	Context  context.Context // ends with the attempt
	Lead     task.Lead
	Packers  task.Packers
	// Instance describes an operator's subtask to its connector.
	Instance func(m checkpoint.OperatorMeta, subtask int, e checkpoint.Epoch, lineage uint64) connector.Instance
	// Restore is what an operator of a subtask starts from; nil: empty.
	Restore func(node, subtask int) *operator.Restore
	Metrics *metrics // where subtasks count
	// Stopped is called once after Kill, or after all subtasks were stopped.
	Stopped func()
}
