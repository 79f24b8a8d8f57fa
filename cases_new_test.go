package staunch

import (
	"context"

	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage/memstore"
)

// NewWith is StartWith for whoever steps the execution: it has not begun.
func NewWith(ctx context.Context, j *Job, o Options, change func(*cluster.Job, *cluster.Options)) (*cluster.Execution, error) {
	p, err := j.Plan(o)
	if err != nil {
		return nil, err
	}
	job, opt := j.runnable(p), p.options.cluster(memstore.New())
	change(&job, &opt)
	return cluster.New(ctx, job, opt), nil
}
