// Package sim runs whole jobs, many times over, on one goroutine each: the real
// leader, protocol, subtasks, keyed state, log and sinks over a store in memory
// that can be crashed. One seed decides everything: the order in which things
// happen, how long they take, what fails and how, when a process is killed and
// when a second one takes the job over while the first still runs. The same seed
// gives the same run, step by step.
//
//	world.go     the scheduler: the clock, who is next, crashes, starts
//	process.go   one process: a cluster.Env, and who runs in it
//	coroutine.go work that may block: it switches at every call
//	timer.go     timers in the world's time
//	profile.go   what a seed decides before the run
//	stop.go      jobs that the user stops, and starts again later
//	branch.go    starts from an older checkpoint, and fresh ones
//	pin.go       checkpoints that the user pins
//	directed.go  what the profiles of some seeds are bent to
//	fault.go     what becomes of each call of the store
//	input.go     the input of the job, its enumerators and readers
//	bank.go      the outside system that the sinks write to
//	keyed.go     operators with keyed state
//	clock.go     their processing-time timers
//	alarm.go     what timers are for, and what the oracle knows of them
//	parts.go     what a job is built of that takes part
//	job.go       the job that is run
//	execution.go how it is run, and what its executions tell
//	tap.go       what operators are told, and their failures
//	workers.go   late, doubled and stale messages
//	oracle.go    what may stand in the bank at the end
//	audit.go     what must hold of the store at any time
//	end.go       what must hold at the end
//	coverage.go  which state of the protocol met which event
//
// The oracle sees the input and what the bank has committed, nothing else, and
// shares no code with the engine. That the simulator notices faults is shown by
// the mutations in mutation_test.go: each changes one line of the engine.
package sim
