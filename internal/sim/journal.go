package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/staunchdev/staunch/connector"
)

// journal returns the sink that is chained to the first source in some seeds.
// It writes the orders down as they are read. While it prepares, the source
// handles mail and reads nothing: what it is handed then, the snapshot has.
func (x *Parts) journal() connector.TransactionalSink[order] {
	x.p.sinks["journal"] = true
	return &sink[order]{committer{x.p, x.w.bank, "journal"}, func(o order) entry { return entry{of: 'j', line: line{Order: o}} }}
}

// keepJournal decides which seeds have one. In half of those it prepares for so
// long that splits are found meanwhile.
func (p *profile) keepJournal(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0xa))
	p.journal = r.IntN(4) == 0
	if p.journal && p.directed == "" && r.IntN(2) == 0 {
		p.slowJournal, p.timeout = true, max(p.timeout, 3*time.Second)
	}
}

// checkJournal: every order of the splits once.
func checkJournal(splits []*split, journal []order, may promise) error {
	missing := map[order]bool{}
	for _, s := range splits {
		for _, o := range s.orders {
			missing[o] = true
		}
	}
	all := len(missing)
	seen := map[order]bool{}
	for _, o := range journal {
		if seen[o] && !may.repeated {
			return fmt.Errorf("DUPLICATE: order %+v is there twice", o)
		}
		if !missing[o] && !seen[o] {
			return fmt.Errorf("order %+v is not of the first source", o)
		}
		seen[o] = true
		delete(missing, o)
	}
	if len(missing) > 0 && !may.lost {
		return fmt.Errorf("LOST: %d of %d orders are missing", len(missing), all)
	}
	return nil
}
