package operator

import (
	"fmt"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// DeclineError is returned by Operator.Snapshot where the checkpoint cannot be
// taken now although nothing is wrong: two snapshots are still being written.
type DeclineError struct {
	Reason checkpoint.Reason
	Detail string
}

func (e *DeclineError) Error() string {
	if e.Detail == "" {
		return e.Reason.String()
	}
	return fmt.Sprintf("%v: %s", e.Reason, e.Detail)
}
