package checkpoint

import "fmt"

// Barriers decides for one subtask what barriers, cancel markers, ends of
// input and the coordinator's mails mean. It belongs to the subtask's
// goroutine; each method takes one event and returns what must be done.
//
// In the aligned modes a channel that delivered its barrier is blocked until
// the snapshot is taken or given up. In AtLeastOnce nothing is ever blocked, so
// several ids may be counted at once. All else is the same.
//
// Between Begin and Prepared (or Fail) the shell takes nothing from any
// channel; mails still come. The barrier leaves only by Prepared, so an abort
// in between lets a cancel marker leave in its place.
//
// Invariants:
//
//  1. Ids are begun at most once and in ascending order: a barrier at or below
//     the last begun id is stale, blocks nothing and is counted.
//  2. A channel is blocked for an id only while that id is aligning or
//     preparing; whatever ends it also unblocks the channel.
//  3. A channel counts once for an id, by its barrier or by its end of input.
//  4. Barriers of one channel ascend, so barrier n on a channel proves that an
//     older id which that channel has not delivered never comes: it is subsumed.
//  5. Every id that is given up before its barrier left is followed downstream
//     by exactly one cancel marker.
type Barriers struct {
	mode     Mode
	channels []channelState
	open     int // channels that have not ended

	aligning  []*alignment // ascending; those that wait for a channel, or for preparing to end
	preparing *alignment   // Begin was returned, Prepared is awaited
	cancelled bool         // preparing was aborted meanwhile
	taken     []ID         // snapshots neither complete nor aborted, ascending
	begun     ID           // the last id begun
	complete  ID           // the last id that operators were told to be complete
	aborted   abortedIDs   // given up, above begun: their barriers are swallowed

	counters BarrierCounters
}

// BarrierOptions are what a new attempt knows beforehand.
type BarrierOptions struct {
	Restored ID // the checkpoint that was restored: nothing at or below it begins
}

// BarrierCounters counts what was ignored or given up.
type BarrierCounters struct {
	StaleBarriers int64 // barriers of ids that were begun or given up before
	StaleMarkers  int64 // cancel markers of such ids
	StaleTriggers int64 // triggers of such ids, or of ids already aligning
	Subsumed      int64 // alignments given up for a newer barrier
	Aborted       int64 // checkpoints given up, before their barrier left, for a marker, an abort or a failure
}

type channelState struct {
	ended   bool
	blocked ID // 0: not blocked
	last    ID // newest barrier that was delivered
}

// NewBarriers returns the barrier handling of a subtask with so many input
// channels, none for a source.
func NewBarriers(mode Mode, channels int, o BarrierOptions) *Barriers {
	switch mode {
	case ExactlyOnce, AtLeastOnce, AtMostOnce:
	default:
		panic(fmt.Sprintf("checkpoint: barriers of %v", mode))
	}
	return &Barriers{
		mode:     mode,
		channels: make([]channelState, channels),
		open:     channels,
		begun:    o.Restored,
		complete: o.Restored,
	}
}

// Counters returns what was counted so far.
func (b *Barriers) Counters() BarrierCounters { return b.counters }

// Blocked says whether nothing may be taken from a channel: it is blocked, or
// a Prepare is awaited.
func (b *Barriers) Blocked(ch int) bool { return b.preparing != nil || b.channels[ch].blocked != 0 }

// Barrier handles a barrier taken from a channel.
func (b *Barriers) Barrier(ch int, bar Barrier, now int64) []Action {
	b.checkTaken(ch, "barrier")
	if b.stale(bar.ID) {
		b.counters.StaleBarriers++
		return nil
	}
	var as []Action
	for _, old := range b.missedBy(ch, bar.ID) {
		as = append(as, b.subsume(old, bar.ID)...)
	}
	b.channels[ch].last = bar.ID
	if newer, ok := b.overtaken(bar.ID); ok {
		// Another channel has gone on to a newer barrier without this one.
		b.counters.StaleBarriers++
		return append(as, b.subsume(bar.ID, newer)...)
	}
	a, started := b.alignment(bar, now)
	if started {
		as = append(as, AlignmentStarted{bar})
	}
	if a.delivered[ch] {
		panic(fmt.Sprintf("checkpoint: channel %d delivered barrier %d twice", ch, bar.ID))
	}
	a.arrive(ch, now)
	if b.mode != AtLeastOnce {
		b.channels[ch].blocked = bar.ID
		as = append(as, Block{ch, bar.ID})
	}
	return append(as, b.beginNext()...)
}

// Cancel handles a cancel marker taken from a channel. Whoever sent it first
// has told the coordinator, so there is no decline.
func (b *Barriers) Cancel(ch int, id ID) []Action {
	b.checkTaken(ch, "cancel marker")
	if b.stale(id) {
		b.counters.StaleMarkers++
		return nil
	}
	if b.isAligning(id) {
		b.counters.Aborted++
	}
	return b.giveUp(id)
}

// EndOfInput handles the end of a channel. It counts as the channel's barrier
// for every pending id.
func (b *Barriers) EndOfInput(ch int, now int64) []Action {
	b.checkTaken(ch, "end of input")
	b.channels[ch].ended = true
	b.open--
	for _, a := range b.aligning {
		if !a.delivered[ch] {
			a.last = now
		}
	}
	return b.beginNext()
}

// Trigger handles the coordinator's mail to a source, or to a subtask all of
// whose inputs have ended. Where the ends are still queued the checkpoint
// waits for them: the records ahead of an end are before the barrier.
func (b *Barriers) Trigger(bar Barrier, now int64) []Action {
	if b.stale(bar.ID) || b.isAligning(bar.ID) {
		b.counters.StaleTriggers++
		return nil
	}
	if newer, ok := b.overtaken(bar.ID); ok {
		return b.subsume(bar.ID, newer)
	}
	b.alignment(bar, now)
	return append([]Action{AlignmentStarted{bar}}, b.beginNext()...)
}

// Prepared says that the sinks' Prepare of an id has returned. The sync phase
// must be over before a record is taken from an unblocked channel: the shell
// runs the actions in order.
func (b *Barriers) Prepared(id ID, now int64) []Action {
	a := b.preparing
	if a == nil || a.barrier.ID != id {
		panic(fmt.Sprintf("checkpoint: prepared %d in state %s", id, b.State()))
	}
	b.preparing = nil
	var as []Action
	if b.cancelled {
		// What the sinks prepared stays theirs: it is part of every later
		// snapshot, and the next checkpoint that completes commits it.
		b.cancelled = false
		as = append(as, ForwardCancel{id})
	} else {
		out := a.barrier
		out.AgeNanos += now - a.first
		b.taken = append(b.taken, id)
		as = append(as, Emit{out}, Snapshot{a.barrier})
	}
	as = append(as, b.unblock(id)...)
	return append(as, b.beginNext()...)
}

// Fail says that the subtask cannot go on with an id: it is not ready, two
// snapshots are still being written, or the sync or async phase failed. (A
// failed Prepare ends the attempt and never comes here.) Before the barrier left, a marker leaves in
// its place; afterwards the marker follows it, and reaches whom the barrier
// did not block; the others are released by the coordinator's abort. An id
// that was acknowledged cannot fail any more.
func (b *Barriers) Fail(id ID, reason Reason, detail string) []Action {
	if b.preparing != nil && b.preparing.barrier.ID == id {
		b.preparing = nil
		var as []Action
		if !b.cancelled {
			b.counters.Aborted++
			as = append(as, SendDecline{id, reason, detail})
		}
		b.cancelled = false
		as = append(as, ForwardCancel{id})
		as = append(as, b.unblock(id)...)
		return append(as, b.beginNext()...)
	}
	if b.take(id) {
		return []Action{SendDecline{id, reason, detail}, ForwardCancel{id}, Discard{id}}
	}
	if b.stale(id) {
		return nil // aborted, or complete, meanwhile
	}
	b.counters.Aborted++
	return append([]Action{SendDecline{id, reason, detail}}, b.giveUp(id)...)
}

// LimitExceeded says that the blocked channels hold more than allowed. The
// newest alignment that blocks anything is given up. Whoever looks at blocked
// channels finds none where nothing is aligning, and does not look while a
// Prepare is awaited: the alignment is over then.
func (b *Barriers) LimitExceeded(detail string) []Action {
	if b.mode == AtLeastOnce || b.preparing != nil {
		panic(fmt.Sprintf("checkpoint: alignment limit exceeded in mode %v, state %s", b.mode, b.State()))
	}
	for i := len(b.aligning) - 1; i >= 0; i-- {
		id := b.aligning[i].barrier.ID
		if b.blocks(id) {
			b.counters.Aborted++
			return append([]Action{SendDecline{id, AlignmentLimit, detail}}, b.giveUp(id)...)
		}
	}
	panic(fmt.Sprintf("checkpoint: alignment limit exceeded in state %s, and nothing is blocked", b.State()))
}

// Abort handles the coordinator's mail that a checkpoint is given up. It may
// overtake the barrier, which is then swallowed when it comes.
func (b *Barriers) Abort(m Abort) []Action {
	as := b.Complete(m.LatestComplete)
	id := m.ID
	switch {
	case b.preparing != nil && b.preparing.barrier.ID == id:
		if !b.cancelled {
			b.counters.Aborted++
		}
		b.cancelled = true
		return as
	case b.take(id):
		return append(as, Discard{id})
	case b.stale(id):
		return as
	}
	if b.isAligning(id) {
		b.counters.Aborted++
	}
	return append(as, b.giveUp(id)...)
}

// Complete handles the coordinator's mail that a checkpoint is in the log.
// Older ones are covered by it; operators hear of each id once.
func (b *Barriers) Complete(id ID) []Action {
	if id <= b.complete {
		return nil
	}
	b.complete = id
	for len(b.taken) > 0 && b.taken[0] <= id {
		b.taken = b.taken[1:]
	}
	return []Action{NotifyComplete{id}}
}

// checkTaken panics if the shell took something from a channel that must not
// be read.
func (b *Barriers) checkTaken(ch int, what string) {
	switch c := b.channels[ch]; {
	case b.preparing != nil:
		panic(fmt.Sprintf("checkpoint: %s taken from channel %d while %d is prepared", what, ch, b.preparing.barrier.ID))
	case c.ended:
		panic(fmt.Sprintf("checkpoint: %s taken from channel %d after its end", what, ch))
	case c.blocked != 0:
		panic(fmt.Sprintf("checkpoint: %s taken from channel %d, which is blocked for %d", what, ch, c.blocked))
	}
}
