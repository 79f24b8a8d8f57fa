package cluster

// serial runs pieces of work one after the other, in the order in which they
// were asked for. It belongs to the leader's loop.
type serial struct {
	busy    bool
	waiting []func(done func())
}

// do runs f when all that was asked for before is done; f must see to it that
// done is called once, in the loop.
func (s *serial) do(f func(done func())) {
	s.waiting = append(s.waiting, f)
	s.next()
}

func (s *serial) next() {
	if s.busy || len(s.waiting) == 0 {
		return
	}
	f := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.busy = true
	f(func() {
		s.busy = false
		s.next()
	})
}

func (s *serial) idle() bool { return !s.busy && len(s.waiting) == 0 }
