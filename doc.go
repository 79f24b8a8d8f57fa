// Package staunch is a stateful stream-processing engine with exactly-once
// checkpoints.
//
// A program builds a Job from sources (From), operators and sinks (To), and
// runs it with Main or Run:
//
//	func build() *staunch.Job {
//		j := staunch.NewJob("wordcount")
//		lines := staunch.From(j, "lines", file.Lines("in.txt"))
//		words := staunch.FlatMapSeq(lines, strings.FieldsSeq)
//		counts := staunch.Count(staunch.KeyBy(words, strings.ToLower), "count")
//		staunch.To(counts, "out", file.NewSink("out", codec.JSON[staunch.KV[string, int64]]()))
//		return j
//	}
//
//	func main() { staunch.Main(build) }
//
// # Names
//
// The name of a job, a source, a sink or an operator with state is the identity
// of what a checkpoint holds of it. A changed program finds its state again by
// these names, wherever in the graph they stand; FormerNames renames. What
// nothing claims any more is refused by name, unless Options.DropState lets it
// go.
//
// # Faults
//
// Building a graph returns no errors. Faults are collected, and Job.Err, Plan,
// Start and Run return all of them in one error: names that are missing or used
// twice, options that do not apply, types that would lose data when encoded,
// methods of a processor that are there with a wrong signature.
//
// # User code
//
// A function of an operator is called on one goroutine a subtask, and never
// while that takes its snapshot. It must not block, and must take the time from
// Ctx.Now. State handles of package state are used inside a call only; they
// read and write the entry of the key in hand. An error or a panic ends the
// attempt: the restart policy decides whether the job goes on from its last
// checkpoint.
//
// # Guarantees
//
// Job.Plan, the verb plan and every start tell what a job delivers end to end,
// with the weakest link first and what to change. Options.Require refuses a job
// that delivers less.
package staunch
