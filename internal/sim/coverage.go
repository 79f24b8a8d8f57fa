package sim

// Coverage counts how often each state of the protocol's two machines met each
// event. The states of the coordinator are prefixed with "coordinator ".
type Coverage struct{ counts map[[2]string]int64 }

// NewCoverage returns an empty Coverage.
func NewCoverage() *Coverage { return &Coverage{counts: map[[2]string]int64{}} }

func (c *Coverage) observe() func(state, event string) {
	if c == nil {
		return nil
	}
	return func(state, event string) { c.counts[[2]string{state, event}]++ }
}

// Add adds what another one counted.
func (c *Coverage) Add(o *Coverage) {
	for cell, n := range o.counts {
		c.counts[cell] += n
	}
}

// Count is how often a state met an event.
func (c *Coverage) Count(state, event string) int64 { return c.counts[[2]string{state, event}] }
