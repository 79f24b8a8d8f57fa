// Package cluster runs a job: a leader that owns the checkpoint log and makes
// the decisions, and workers that run the subtasks.
//
// The leader is a single loop over an inbox (inbox.go). It feeds events to the
// pure checkpoint.Coordinator and carries out its actions; whatever blocks runs
// through Env.Go and comes back as an item of the inbox. A job lives through
// generations (one a process that took the log over) and attempts (one run of
// all subtasks between two restarts):
//
//	open.go     take the log over, choose what to restore
//	attempt.go  prepare and deploy an attempt
//	end.go      its end, by failure, stop or the final checkpoint
//	restart.go  what follows a failure
//	lead.go     what subtasks say to the leader
//	decide.go   events to the coordinator, its actions carried out
//	appends.go  the one outstanding append to the log
//	publish.go  from acks to a durable manifest
//	commit.go   the sinks' committers
//	splits.go   the sources' enumerators and who reads what
//	restore.go  from a manifest to what each subtask starts from
//	repeats.go  what fails again and again is logged once a minute
//	collect.go  objects that nothing names any more
//	local.go    workers of this process
package cluster
