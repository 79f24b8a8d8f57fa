package task

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

var seedFlag = flag.Uint64("seed", 0, "seed of TestRandomSchedules; 0: a new one")

// TestRandomSchedules steps subtasks and runs the executor's work in random
// order while checkpoints are triggered and aborted. Each checkpoint that all
// subtasks acknowledged must be a consistent cut: the counters have seen what
// stands before the split's positions, no more and no less; under AtLeastOnce
// no less.
func TestRandomSchedules(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed=%d", seed)
	completed := 0
	for i := range uint64(120) {
		mode := checkpoint.Mode(i%3 + 1)
		completed += randomSchedule(t, rand.New(rand.NewPCG(seed, i)), mode, fmt.Sprintf("seed %d, run %d, %v", seed, i, mode))
		if t.Failed() {
			return
		}
	}
	t.Logf("%d checkpoints", completed)
	if *seedFlag == 0 && completed < 300 {
		t.Errorf("only %d checkpoints completed in 120 runs", completed)
	}
}

func randomSchedule(t *testing.T, rnd *rand.Rand, mode checkpoint.Mode, name string) int {
	p := newPipeline(t, shape{
		sources: 2, keyed: 2, capacity: 1 + rnd.IntN(4), batch: 1 + rnd.IntN(16), mode: mode,
		options: Options{SliceRecords: 1 + rnd.IntN(32)},
	})
	const perSplit = 400
	for i, r := range p.readers {
		r.most = 1 + rnd.IntN(32)
		r.put(1+i*perSplit, perSplit)
		r.ended = true
	}
	var next, pending checkpoint.ID = 1, 0
	completed, committed := 0, checkpoint.ID(0)
	answered := map[checkpoint.ID]int{}
	acks, declines, granted, endings := 0, 0, 0, 0
	abort := func(id checkpoint.ID) {
		p.all(checkpoint.Abort{ID: id, Epoch: epoch, LatestComplete: committed})
		pending = 0
	}
	for step := 0; ; step++ {
		if step > 200_000 {
			t.Fatalf("%s: it never ends: %d acks, %d declines, ended %v", name, len(p.acks), len(p.declines), p.ended)
		}
		switch k := rnd.IntN(100); {
		case k < 60:
			p.tasks[rnd.IntN(len(p.tasks))].Step()
		case k < 80 && len(p.work) > 0:
			i := rnd.IntN(len(p.work))
			work := p.work[i]
			p.work = slices.Delete(p.work, i, i+1)
			work(context.Background())
		case k < 90 && granted < len(p.reserves):
			// Tokens begin at 1 in each source: the reservation says whose it is.
			for _, s := range p.sources {
				if p.reserved[granted][0].Split == "split-"+fmt.Sprint(s.cfg.ID.Index) {
					s.Deliver(Reserved{Token: p.reserves[granted]})
				}
			}
			granted++
		case k < 95 && pending == 0 && len(p.ready) == 4 && endings == 0:
			pending = next
			next++
			p.triggerSources(pending)
		case k == 99 && pending != 0 && rnd.IntN(20) == 0:
			abort(pending)
		}
		for ; acks < len(p.acks); acks++ {
			id := p.acks[acks].ID
			if answered[id]++; answered[id] == 4 {
				if id == pending {
					pending = 0
				}
				completed++
				committed = id
				p.checkCut(id, mode, name)
				p.all(checkpoint.Complete{ID: id, Epoch: epoch})
				p.all(checkpoint.Committed{ID: id, Epoch: epoch})
			}
		}
		for ; declines < len(p.declines); declines++ {
			t.Fatalf("%s: declined: %+v", name, p.declines[declines])
		}
		for ; endings < len(p.ended); endings++ {
			if pending == 0 {
				continue
			}
			// Who ended before its barrier came is triggered by mail.
			for _, task := range p.tasks {
				if task.cfg.ID == p.ended[endings] {
					task.Deliver(trigger(pending))
				}
			}
		}
		if len(p.ended) == 4 && pending == 0 {
			break
		}
	}
	p.settle()
	p.mustBeFine()
	var wrote []int
	for _, w := range p.writers {
		wrote = append(wrote, w.wrote...)
	}
	slices.Sort(wrote)
	if !slices.Equal(wrote, upTo(2*perSplit)) {
		t.Errorf("%s: the sinks were given %d records of %d", name, len(wrote), 2*perSplit)
	}
	for i, task := range p.keyed {
		for id := range next {
			if n := count(p.counters[i].log, fmt.Sprint("snapshot ", id)); n > 1 {
				t.Errorf("%s: %v took snapshot %d %d times", name, task.cfg.ID, id, n)
			}
		}
		if s, r := countPrefix(p.counters[i].log, "snapshot "), count(p.counters[i].log, "release"); s != r {
			t.Errorf("%s: %v took %d snapshots and released %d", name, task.cfg.ID, s, r)
		}
	}
	return completed
}

func countPrefix(log []string, prefix string) (n int) {
	for _, l := range log {
		if len(l) >= len(prefix) && l[:len(prefix)] == prefix {
			n++
		}
	}
	return n
}

// checkCut compares what was read with what was counted at a checkpoint.
func (p *pipeline) checkCut(id checkpoint.ID, mode checkpoint.Mode, name string) {
	p.t.Helper()
	const perSplit = 400
	var read, counted []int
	for i := range p.sources {
		n := p.ackOf(id, sourceID(i)).Operators[0].Splits[0].N
		for k := range n {
			read = append(read, 1+i*perSplit+int(k))
		}
	}
	for k, c := range p.counters {
		n := p.ackOf(id, keyedID(k)).Operators[0].States[0].Entries
		counted = append(counted, c.sum[:n]...)
	}
	slices.Sort(counted)
	if mode == checkpoint.AtLeastOnce {
		for _, v := range read {
			if _, ok := slices.BinarySearch(counted, v); !ok {
				p.t.Fatalf("%s: checkpoint %d has read %d and not counted it", name, id, v)
			}
		}
		return
	}
	if !slices.Equal(read, counted) {
		p.t.Fatalf("%s: checkpoint %d: %d records read, %d counted", name, id, len(read), len(counted))
	}
}
