package cluster

import (
	"fmt"
	"time"
)

// restartState counts failures for the restart policy.
type restartState struct {
	total       int
	consecutive int
}

// restart follows the failure of an attempt by the restart policy.
func (x *Execution) restart(a *attempt) {
	p := x.opt.Restart
	if a.completed && p.Reset > 0 && time.Duration(x.env.Now()-a.begun) >= p.Reset {
		x.restarts.consecutive = 0
	}
	if p.Attempts < 0 || p.Attempts > 0 && x.restarts.consecutive >= p.Attempts {
		if p.Attempts > 0 {
			a.cause = fmt.Errorf("failed %d times in a row, the last time: %w", x.restarts.consecutive+1, a.cause)
		}
		x.given = a.cause
		x.collectLast(a, func() { x.finish(a.cause) })
		return
	}
	delay := x.restarts.delay(p, x.env.Nonce()[0])
	x.restarts.consecutive++
	x.restarts.total++
	x.log.Warn("attempt failed, restarting", "epoch", a.epoch.String(), "delay", delay, "restart", x.restarts.total, "err", a.cause)
	x.emit(Restarting{Restart: x.restarts.total, Delay: delay, Cause: a.cause})
	x.env.After(delay, func() {
		x.in.post(func() {
			if x.att == nil && !x.finished {
				x.begin()
			}
		})
	})
}

// delay grows by Factor up to MaxDelay; exponential ones get up to 10 % of
// jitter, so that jobs that failed together do not come back together.
func (r restartState) delay(p RestartPolicy, random byte) time.Duration {
	d := float64(p.Delay)
	for range r.consecutive {
		if d *= p.Factor; d >= float64(p.MaxDelay) && p.MaxDelay > 0 {
			d = float64(p.MaxDelay)
			break
		}
	}
	if p.Factor > 1 {
		d *= 1 + 0.1*float64(random)/255
	}
	return time.Duration(d)
}
