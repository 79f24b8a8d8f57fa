package operator

import (
	"fmt"

	"github.com/staunchdev/staunch/connector"
)

// How many polls a reservation covers. It grows while records wait for the
// log, so that a reservation lasts as long as the next one takes.
const (
	reserveMin = 4
	reserveMax = 256
)

// holding is what an AtMostOnce source has polled but may not emit yet. Polls
// pass through three groups: filled while a reservation is asked for, asked
// for, and granted; so the log is written while records flow.
type holding[T any] struct {
	filling, asked, granted []*poll[T]
	at                      int  // next of granted to be emitted
	asking                  bool // asked is not granted yet
	size                    int  // polls that filling takes
	free                    []*poll[T]
}

// pollReserved emits one poll that is reserved, and reads one ahead.
func (s *source[T]) pollReserved(now int64, max int) (PollResult, error) {
	h := &s.held
	if h.size == 0 {
		h.size = reserveMin
	}
	var res PollResult
	worked := false
	if h.at < len(h.granted) {
		p := h.granted[h.at]
		if err := s.emit(p); err != nil {
			return res, err
		}
		h.granted[h.at] = nil
		h.at++
		h.free = append(h.free, p)
		res.Records = len(p.batch.Values)
		worked = true
	}
	if h.at == len(h.granted) {
		h.granted, h.at = h.granted[:0], 0
	}
	if s.live > 0 && len(h.filling) < h.size {
		n, when := s.rate.allow(now, max)
		if n == 0 {
			res.NotBefore = when
		} else {
			p := h.take()
			ok, err := s.read(p, n)
			if err != nil {
				return res, err
			}
			if ok {
				h.filling = append(h.filling, p)
				worked = true
			} else {
				h.free = append(h.free, p)
			}
		}
	}
	s.reserve()
	res.Idle = !worked
	res.Ended = s.noMore && s.live == 0 && len(h.filling) == 0 && len(h.granted) == 0 && !h.asking
	return res, nil
}

// reserve asks for what is filled, unless something is asked for already or
// waits to be emitted, which must not be overtaken.
func (s *source[T]) reserve() {
	h := &s.held
	if h.asking || len(h.asked) > 0 || len(h.filling) == 0 {
		return
	}
	h.asked, h.filling = h.filling, h.asked
	h.asking = true
	s.rt.Reserve(s.reservations(h.asked), func(err error) {
		if err != nil {
			s.rt.Fail(fmt.Errorf("source %q: reserve: %w", s.cfg.Name, err))
			return
		}
		h.asking = false
		s.grant()
	})
}

// grant moves on what is reserved, once all before it is emitted.
func (s *source[T]) grant() {
	h := &s.held
	if len(h.granted) == 0 && len(h.filling) >= h.size && h.size < reserveMax {
		h.size *= 2 // nothing was left to emit, and no more could be read: the log is slow
	}
	if h.at > 0 { // it may never be emptied, so it is moved down here
		n := copy(h.granted, h.granted[h.at:])
		clear(h.granted[n:])
		h.granted, h.at = h.granted[:n], 0
	}
	h.granted = append(h.granted, h.asked...)
	clear(h.asked)
	h.asked = h.asked[:0]
}

// reservations has, for each split, the furthest position of some polls.
func (s *source[T]) reservations(polls []*poll[T]) []Reservation {
	var rs []Reservation
	last := func(split string) *Reservation {
		for i := range rs {
			if rs[i].Split == split {
				return &rs[i]
			}
		}
		rs = append(rs, Reservation{Operator: s.cfg.Name, Split: split})
		return &rs[len(rs)-1]
	}
	for _, p := range polls {
		last(s.splits[p.split].ID).End = connector.Offset{N: p.next.N, State: p.next.State}
	}
	return rs
}

func (h *holding[T]) take() *poll[T] {
	if n := len(h.free); n > 0 {
		p := h.free[n-1]
		h.free = h.free[:n-1]
		return p
	}
	return &poll[T]{}
}
