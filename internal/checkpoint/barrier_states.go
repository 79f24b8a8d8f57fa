package checkpoint

// The states and events of Barriers have names, for traces and so that a test
// can count how often each state met each event.
const (
	barriersIdle             = "idle"              // nothing pending
	barriersAligning         = "aligning"          // one id waits for barriers
	barriersAligningSeveral  = "aligning-several"  // a checkpoint and a savepoint do
	barriersPreparing        = "preparing"         // Begin was returned
	barriersPreparingAborted = "preparing-aborted" // and the id aborted since
	barriersEnded            = "ended"             // no open channel: triggers come by mail
	// "overtaking" is kept for unaligned barriers.
)

// State names the state: one of BarrierStates.
func (b *Barriers) State() string {
	switch {
	case b.preparing != nil && b.cancelled:
		return barriersPreparingAborted
	case b.preparing != nil:
		return barriersPreparing
	case b.open == 0:
		return barriersEnded
	case len(b.aligning) > 1:
		return barriersAligningSeveral
	case len(b.aligning) == 1:
		return barriersAligning
	}
	return barriersIdle
}

// String is State, for traces.
func (b *Barriers) String() string { return b.State() }

// BarrierStates lists the names that State returns.
func BarrierStates() []string {
	return []string{barriersIdle, barriersAligning, barriersAligningSeveral, barriersPreparing, barriersPreparingAborted, barriersEnded}
}

// BarrierEvents lists the names of the events: the methods of Barriers.
func BarrierEvents() []string {
	return []string{"barrier", "cancel", "end-of-input", "trigger", "prepared", "fail", "limit", "abort", "complete"}
}

// BarrierImpossible lists the cells (state, event) that panic, whatever the
// event carries. Others may panic too, for an id or channel that cannot be.
func BarrierImpossible() [][2]string {
	var cells [][2]string
	for _, event := range []string{"barrier", "cancel", "end-of-input"} {
		cells = append(cells, [2]string{barriersPreparing, event}, [2]string{barriersPreparingAborted, event}, [2]string{barriersEnded, event})
	}
	for _, state := range []string{barriersIdle, barriersAligning, barriersAligningSeveral, barriersEnded} {
		cells = append(cells, [2]string{state, "prepared"})
	}
	for _, state := range []string{barriersIdle, barriersPreparing, barriersPreparingAborted, barriersEnded} {
		cells = append(cells, [2]string{state, "limit"})
	}
	return cells
}
