package operator

// Add adds n.
func (c *Counter) Add(n int64) { c.n.Add(n) }

// Load returns the value.
func (c *Counter) Load() int64 { return c.n.Load() }
