package sim

import (
	"math/rand/v2"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// directedKind is one of the directed biases.
type directedKind struct {
	name  string
	share int // how often it is chosen
	// In AtLeastOnce, where nothing is blocked, mail has more to come late for.
	atLeastOnce int
	bend        func(p *profile, r *rand.Rand)
}

// directed are biases that make things come together which seldom do: each has
// the protocol meet, in some of its seeds, what ordinary seeds meet once in many
// thousands. One seed in directedEvery has one of them, so that most stay
// ordinary. All keep failAfter at 0: what fails here all the time would restart
// the job all the time.
var directed = []directedKind{
	// Mail, mostly that a checkpoint is aborted, comes after the barriers of the
	// next ones; parts of what was aborted are still being written, and fail.
	{"late aborts", 1, 2, func(p *profile, r *rand.Rand) {
		p.stages, p.inline, p.batch, p.channel = 2, false, 1+r.IntN(3), 1+r.IntN(2)
		p.slowMail, p.slowEvery = 3+r.IntN(6), 3
		p.mailTime, p.writeTime = 6*p.interval, 8*p.interval
		p.slowWrite, p.asyncFails, p.syncFails = 2+r.IntN(4), 20, 10+r.IntN(30)
	}},
	// The word that a checkpoint is complete comes as late, and the next one may
	// be given up before it does.
	{"late completions", 1, 8, func(p *profile, r *rand.Rand) {
		p.stages, p.inline, p.batch, p.channel = 2, false, 1+r.IntN(3), 1+r.IntN(2)
		p.slowMail, p.slowWord, p.slowEvery, p.mailTime = 6+r.IntN(8), 1+r.IntN(2), 2, p.interval*time.Duration(4+r.IntN(8))
		p.timeout = p.interval + time.Duration(r.Int64N(int64(p.interval)))
	}},
	// The log does not answer for long at many checkpoints, while sinks commit the
	// one before.
	{"silent log", 3, 3, func(p *profile, r *rand.Rand) {
		p.outage, p.longOutage, p.giveUp = 2, 1, time.Duration(30+r.IntN(60))*time.Millisecond
		p.lateAck, p.doubleAck, p.requests, p.syncFails = 6, 2, 2, 60
		p.slowCommit, p.commitTime, p.commitFails = 2, 2*p.interval, r.IntN(2)*2
		p.slowLeader, p.sources, p.timeout = 100, 3, 5*p.interval
	}},
	// Manifests take longer to write than a checkpoint may take, and the log at
	// times.
	{"slow manifests", 2, 2, func(p *profile, r *rand.Rand) {
		p.slowManifest, p.timeout = 2, time.Duration(100+r.IntN(150))*time.Millisecond
		p.outage, p.longOutage, p.giveUp = 2, 1, time.Duration(30+r.IntN(60))*time.Millisecond
		p.slowLeader = 100
	}},
	// Sinks commit for longer than the next checkpoints take, and fail at it; the
	// attempt fails too, and the leader reads of it one after the other.
	{"slow sinks", 2, 2, func(p *profile, r *rand.Rand) {
		p.slowCommit, p.commitTime, p.commitFails, p.slowLeader = 3, 4*p.interval, 1+r.IntN(2), 40+r.IntN(100)
		p.outage, p.longOutage, p.giveUp = 2, 1, time.Duration(30+r.IntN(60))*time.Millisecond
		p.slowManifest, p.userFails, p.timeout = 2, 200, 5*p.interval
	}},
	// Enumerators fail long after their checkpoint was given up.
	{"slow enumerators", 1, 1, func(p *profile, r *rand.Rand) {
		p.slowEnumerator, p.enumeratorFails = 1+r.IntN(3), 2
	}},
}

const directedEvery = 6

// direct bends the profile of some seeds. It draws from its own source of
// randomness: the other seeds are what they would be without.
func (p *profile) direct(seed uint64, mode checkpoint.Mode) {
	if seed%directedEvery != 0 {
		return
	}
	kinds := directedKinds(mode)
	d := kinds[seed/directedEvery%uint64(len(kinds))]
	r := rand.New(rand.NewPCG(seed, 0xd))
	p.directed, p.failAfter, p.minPause, p.maxFaults = d.name, 0, 0, 200+r.IntN(200)
	p.interval = time.Duration(100+r.IntN(60)) * time.Millisecond
	p.timeout = time.Duration(150+r.IntN(150)) * time.Millisecond
	p.span = int64(time.Second) + r.Int64N(int64(2*time.Second))
	p.stepCost = 100_000 + r.Int64N(100_000)
	p.calmAt, p.calmAfter = 12_000+r.IntN(6000), int64(10*time.Second)
	if r.IntN(2) == 0 {
		p.crashAt, p.crashLog, p.crashBank, p.rivalAt = nil, nil, nil, nil
	}
	d.bend(p, r)
}

// directedKinds are the directed biases, each as often as its share says.
func directedKinds(mode checkpoint.Mode) (kinds []directedKind) {
	for _, d := range directed {
		share := d.share
		if mode == checkpoint.AtLeastOnce {
			share = d.atLeastOnce
		}
		for range share {
			kinds = append(kinds, d)
		}
	}
	return kinds
}
