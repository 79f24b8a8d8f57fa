package task

import (
	"math"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/element"
	"github.com/staunchdev/staunch/internal/operator"
	"github.com/staunchdev/staunch/internal/transport"
)

// gate takes from the channels of a subtask in turn: one slice of each, so that
// a channel with a long batch holds up no other one.
type gate struct {
	channels []channel
	marks    []int64 // per port, the watermark handed on
	open     int     // channels that have not ended
	at       int     // whose turn it is
}

// channel is the receiving end of one channel. Its batch in hand has been
// popped and is processed from pos on; records in it are in front of all that
// is in the ring.
type channel struct {
	ring    *transport.Ring
	from    checkpoint.SubtaskID
	index   int
	port    int
	blocked bool
	ended   bool
	mark    int64 // watermark

	popped element.Element // what is not a batch
	batch  element.Batch
	pos, n int
}

func (g *gate) init(inputs []Input, entries []operator.Entry) {
	g.channels = make([]channel, len(inputs))
	for i, in := range inputs {
		g.channels[i] = channel{ring: in.Ring, from: in.From, index: i, port: in.Port, mark: math.MinInt64}
	}
	g.marks = make([]int64, len(entries))
	for i := range g.marks {
		g.marks[i] = math.MinInt64
	}
	g.open = len(inputs)
}

// next returns the channel whose turn it is, with a batch in hand or something
// else popped; or nil if no channel that is open and not blocked has anything.
func (g *gate) next() *channel {
	for range g.channels {
		c := &g.channels[g.at]
		if g.at++; g.at == len(g.channels) {
			g.at = 0
		}
		if c.blocked || c.ended {
			continue
		}
		if c.batch != nil {
			return c
		}
		e, ok := c.ring.Pop()
		if !ok {
			continue
		}
		if e.Kind == element.Records {
			c.batch, c.pos, c.n = e.Batch, 0, e.Batch.Len()
		}
		c.popped = e
		return c
	}
	return nil
}

// cursor returns the next slice of the batch in hand.
func (c *channel) cursor(max int) (from, to int) {
	return c.pos, min(c.pos+max, c.n)
}

// advance says that the batch is processed up to to.
func (c *channel) advance(to int) {
	c.pos = to
	if c.pos == c.n {
		c.batch.Recycle()
		c.batch, c.popped = nil, element.Element{}
	}
}

// block stops taking from a channel. Its producer may go on until the channel
// is full.
func (g *gate) block(ch int) {
	g.channels[ch].blocked = true
	g.channels[ch].ring.Relieve()
}

func (g *gate) unblock(ch int) { g.channels[ch].blocked = false }

// held is how many records stand in blocked channels.
func (g *gate) held() (records int64) {
	for i := range g.channels {
		if c := &g.channels[i]; c.blocked {
			records += c.ring.Records()
		}
	}
	return records
}

// ahead is, per channel, how many records are queued before a barrier.
func (g *gate) ahead(id checkpoint.ID) []int64 {
	queued := make([]int64, len(g.channels))
	for i := range g.channels {
		if c := &g.channels[i]; !c.ended {
			queued[i] = int64(c.n-c.pos) + c.ring.Ahead(id)
			if c.batch == nil {
				queued[i] = c.ring.Ahead(id)
			}
		}
	}
	return queued
}

// watermark notes the watermark of a channel, and returns that of its port if
// it has risen: the least of its channels.
func (g *gate) watermark(c *channel, t int64) (at int64, risen bool) {
	c.mark = max(c.mark, t)
	return g.rise(c.port)
}

// end says that a channel has ended. The others of its port are no longer held
// back by it.
func (g *gate) end(c *channel) (at int64, risen bool) {
	c.ended = true
	g.open--
	c.popped = element.Element{}
	return g.rise(c.port)
}

func (g *gate) rise(port int) (at int64, risen bool) {
	at = math.MaxInt64
	for i := range g.channels {
		if c := &g.channels[i]; c.port == port && !c.ended {
			at = min(at, c.mark)
		}
	}
	if at == math.MaxInt64 || at <= g.marks[port] {
		return 0, false
	}
	g.marks[port] = at
	return at, true
}

// mark is the least watermark handed on to any port.
func (g *gate) mark() int64 {
	if len(g.marks) == 0 {
		return math.MinInt64
	}
	at := g.marks[0]
	for _, m := range g.marks {
		at = min(at, m)
	}
	return at
}
