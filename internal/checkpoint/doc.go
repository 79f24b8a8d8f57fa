// Package checkpoint is the checkpoint protocol as pure state machines: an
// event goes in, actions come out. It does no I/O, starts no goroutine and
// reads no clock; the shells in internal/task and internal/cluster carry the
// actions out. What crosses between a coordinator and subtasks are the plain
// values of messages.go.
//
//   - Barriers decides, for one subtask, what each barrier, cancel marker, end
//     of input and abort means: block, unblock, snapshot, forward, decline.
//   - Coordinator decides when to trigger, what an ack or a decline or a
//     timeout means, when a checkpoint is complete, committed, disposable.
//   - Manifest is what a checkpoint keeps.
//   - Garbage decides what may be deleted.
package checkpoint
