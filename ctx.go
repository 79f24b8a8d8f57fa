package staunch

import (
	"context"
	"math"
	"time"

	"github.com/staunchdev/staunch/internal/operator"
)

// noTime is the event time of a record in a stream without event time.
const noTime = math.MinInt64

// Ctx is what a call of user code gets: the output, the times, the
// cancellation. It is valid during that call only, and belongs to the subtask's
// goroutine.
type Ctx[Out any] struct {
	main      emitter[Out]
	sides     []sideEmitter
	time      int64 // event time of the record or timer in hand
	watermark int64
	rt        *operator.Runtime
}

// Emit sends v on, at the time of the record in hand. It does not block and
// cannot fail.
func (c *Ctx[Out]) Emit(v Out) { c.main.emit(v, c.time) }

// EmitAt sends v on with another event time.
func (c *Ctx[Out]) EmitAt(v Out, at time.Time) { c.main.emitAt(v, at.UnixNano()) }

// Time is the event time of the record or of the timer in hand; zero if the
// stream has none.
func (c *Ctx[Out]) Time() time.Time { return eventTime(c.time) }

// Watermark is the event time up to which the input is complete; zero before
// the first.
func (c *Ctx[Out]) Watermark() time.Time { return eventTime(c.watermark) }

// Now is the processing time. Use it in place of time.Now: tests and the
// simulator set it.
func (c *Ctx[Out]) Now() time.Time { return time.Unix(0, c.rt.Now()).UTC() }

// Context ends when the attempt ends; pass it to whatever blocks.
func (c *Ctx[Out]) Context() context.Context { return c.rt.Context }

func eventTime(n int64) time.Time {
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// newCtx makes the context of one operator instance. outs are the consumers by
// port.
func newCtx[Out any](n *node, outs [][]any) Ctx[Out] {
	c := Ctx[Out]{time: noTime, watermark: noTime, main: newEmitter[Out](outs[0])}
	for i, p := range n.ports[1:] {
		c.sides = append(c.sides, p.emitter(outs[i+1]))
	}
	return c
}

// begin prepares for a slice whose event times are times, or nil.
func (c *Ctx[Out]) begin(times []int64) {
	c.main.timed = times != nil
	c.time = noTime
}

// flush hands on what the slice emitted: the main output, then the sides.
func (c *Ctx[Out]) flush() error {
	if err := c.main.flush(); err != nil {
		return err
	}
	for _, s := range c.sides {
		if err := s.flush(); err != nil {
			return err
		}
	}
	return nil
}

// forward hands a watermark on behind everything emitted before it.
func (c *Ctx[Out]) forward(t int64) error {
	c.watermark = t
	if err := c.main.out.Watermark(t); err != nil {
		return err
	}
	for _, s := range c.sides {
		if err := s.forward(t); err != nil {
			return err
		}
	}
	return nil
}
