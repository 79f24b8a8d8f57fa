package cluster

import (
	"runtime"
	"strings"
)

// stuckStacks are the stacks of all goroutines that work for a subtask or an
// attempt: of a subtask that does not stop it shows where its user's code is.
func stuckStacks() string {
	b := make([]byte, 1<<20)
	b = b[:runtime.Stack(b, true)]
	var own []string
	for g := range strings.SplitSeq(string(b), "\n\n") {
		if strings.Contains(g, "internal/task.(*Task).") || strings.Contains(g, "cluster.(*Execution).inAttempt.") {
			own = append(own, g)
		}
	}
	return strings.Join(own, "\n\n")
}
