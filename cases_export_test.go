package staunch

import (
	"context"

	"github.com/staunchdev/staunch/internal/cluster"
	"github.com/staunchdev/staunch/storage/memstore"
)

// StartWith is Start, with what the public options do not say: change is given
// the job and the options as the cluster takes them.
func StartWith(ctx context.Context, j *Job, o Options, change func(*cluster.Job, *cluster.Options)) (*cluster.Execution, error) {
	p, err := j.Plan(o)
	if err != nil {
		return nil, err
	}
	job, opt := j.runnable(p), p.options.cluster(memstore.New())
	change(&job, &opt)
	return cluster.Start(ctx, job, opt), nil
}
