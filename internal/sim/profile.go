package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// profile is what a seed decides before the run: the shape of the job, and how
// much of what goes wrong. Seeds differ in kind, not only in order: most have
// but some of the faults, and some have none.
type profile struct {
	directed    string // the bias of a directed seed
	freesSlot   bool   // see freedSlot
	journal     bool   // a sink is chained to the first source
	slowJournal bool   // and prepares for so long that splits are found meanwhile

	// The job.
	sources  int  // 2, or 3: the third is bounded and ends early
	records  int  // of all splits together
	keys     int  // of the accounts
	accounts int  // subtasks of the first keyed operator, at the first start
	stages   int  // 1, or 2: a second shuffle behind the accounts
	inline   bool // snapshots are written by the subtasks themselves
	rescale  bool // another parallelism at each start
	batch    int  // records in a batch of an edge
	channel  int  // batches in a channel

	// Checkpoints.
	interval, timeout, minPause, giveUp time.Duration
	failAfter, retain                   int
	alignmentLimit                      int64
	trimEvery                           int

	// Time.
	stepCost   int64 // mean, of anything that is run
	recordCost int64 // of an operator's function, for some subtasks
	span       int64 // the input becomes available over this time
	workSpread int   // coroutines differ in speed by this factor
	landEvery  int   // steps until a late create lands, in the mean
	slowEvery  int   // one subtask in so many is slow
	slowLeader int   // the leader stands still after one step in so many; 0: never
	mailTime   time.Duration
	writeTime  time.Duration // of a part of a snapshot that is slow
	commitTime time.Duration

	// What goes wrong: one in so many, 0 for never.
	maxFaults                                            int
	refuse, unknown, unsynced, unreadable                int // calls of the store
	commitFails, prepareFails, bankSlow                  int // calls of the bank
	syncFails, asyncFails, enumeratorFails, userFails    int
	slowWrite, slowCommit                                int
	lateAck, doubleAck, loseAck, staleMail, loseComplete int
	longOutage                                           int // outages that outlast giveUp by far
	slowManifest                                         int // to write
	slowWord                                             int // that a checkpoint is complete
	slowMail, outage, slowStore, slowEnumerator          int
	noteFails                                            int // operators, at being told of a checkpoint's end
	requests                                             int // checkpoints asked for by the user

	// What the user does.
	alarms   bool  // the job keeps alarms
	stops    int   // that the user makes at most
	stopAt   []int // steps
	branches int   // starts from an older checkpoint, or fresh, at most
	pins     int   // made or taken back between two processes, at most

	crashAt   []int // steps
	crashLog  []int // creates in the log: the process dies at it
	crashBank []int // calls of the bank: it dies at it
	rivalAt   []int // steps
	calmAt    int   // steps
	calmAfter int64 // or so much time; 0: however long that takes
	calmStart int64
}

func draw(r *rand.Rand, mode checkpoint.Mode) profile {
	some := func(p float64, n int) int { // one in about n, for a share p of seeds
		if r.Float64() >= p {
			return 0
		}
		return n/2 + r.IntN(n) + 1
	}
	ms := func(lo, hi int) time.Duration {
		return time.Duration(lo)*time.Millisecond + time.Duration(r.Int64N(int64(hi-lo)*int64(time.Millisecond)))
	}
	p := profile{
		sources: 2 + r.IntN(2), records: 200 + r.IntN(60), keys: 4 + r.IntN(80), accounts: 2 + r.IntN(2),
		stages: 1 + r.IntN(3)/2, inline: r.IntN(6) == 0, rescale: r.IntN(2) == 0, batch: 1 + r.IntN(8), channel: 1 + r.IntN(4),
		interval: ms(100, 500), timeout: ms(150, 1500), giveUp: ms(50, 600), retain: 1 + r.IntN(3),
		trimEvery: 8 + r.IntN(40),
		stepCost:  int64(20+r.IntN(250)) * 1000, span: int64(ms(300, 2500)), workSpread: 1 + r.IntN(12), landEvery: 20 + r.IntN(300),
		maxFaults: 3 + r.IntN(25), calmAt: 2500 + r.IntN(3000),
	}
	if r.IntN(3) == 0 {
		p.minPause = ms(10, 300)
	}
	if r.IntN(2) == 0 {
		p.failAfter = 1 + r.IntN(3)
		// A timeout that a healthy job cannot keep would restart it for ever.
		p.timeout = max(p.timeout, time.Duration(3000*p.stepCost))
	}
	if r.IntN(4) == 0 {
		p.alignmentLimit = int64(2 + r.IntN(20))
		if p.failAfter > 0 { // likewise a limit that every checkpoint passes
			p.alignmentLimit += int64(p.records)
		}
	}
	if r.IntN(3) == 0 {
		p.recordCost = int64(50+r.IntN(1500)) * 1000
	}
	if r.IntN(10) > 0 { // else nothing goes wrong but crashes
		p.refuse, p.unknown, p.unsynced, p.unreadable = some(0.4, 60), some(0.5, 30), some(0.3, 60), some(0.2, 80)
		p.commitFails, p.prepareFails, p.bankSlow = some(0.5, 4), some(0.15, 20), some(0.3, 5)
		p.syncFails, p.asyncFails, p.enumeratorFails = some(0.25, 30), some(0.25, 30), some(0.15, 4)
		p.userFails, p.slowWrite = some(0.2, 300), some(0.5, 12)
		p.lateAck, p.doubleAck = some(0.4, 15), some(0.4, 15)
		p.loseAck = some(0.2, 40)
		p.staleMail, p.loseComplete = some(0.3, 30), some(0.3, 20)
		p.slowMail, p.outage = some(0.4, 60), some(0.4, 8)
		p.slowStore, p.slowEnumerator = some(0.3, 80), some(0.2, 8)
		p.noteFails = some(0.3, 20)
		p.requests = some(0.3, 6)
	}
	if r.IntN(8) > 0 {
		for range 1 + r.IntN(3) {
			switch r.IntN(6) {
			case 0, 1, 2:
				p.crashAt = append(p.crashAt, 100+r.IntN(1500))
			case 3, 4:
				p.crashLog = append(p.crashLog, 2+r.IntN(24))
			case 5:
				p.crashBank = append(p.crashBank, 2+r.IntN(40))
			}
		}
	}
	if r.IntN(4) == 0 {
		for range 1 + r.IntN(2) {
			p.rivalAt = append(p.rivalAt, 100+r.IntN(1500))
		}
	}
	p.slowEvery, p.mailTime, p.writeTime = 6, 2*p.interval, 3*p.interval
	slices.Sort(p.crashAt)
	slices.Sort(p.rivalAt)
	return p
}

// happens says whether something that goes wrong once in n does so now. Faults
// come to an end, so that a job that can go on must.
func (w *world) happens(n int) bool {
	if n == 0 || w.calm || w.faults <= 0 || w.rng.IntN(n) != 0 {
		return false
	}
	w.faults--
	return true
}

// once removes n from the sorted or unsorted list and says whether it was there.
func once(list *[]int, n int) bool {
	i := slices.Index(*list, n)
	if i < 0 {
		return false
	}
	*list = slices.Delete(*list, i, i+1)
	return true
}
