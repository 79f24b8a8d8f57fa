package staunch

import "github.com/staunchdev/staunch/internal/cluster"

// Runnable is the job as the cluster takes it, for the simulator.
func Runnable(j *Job, o Options) (cluster.Job, error) {
	p, err := j.Plan(o)
	if err != nil {
		return cluster.Job{}, err
	}
	return j.runnable(p), nil
}
