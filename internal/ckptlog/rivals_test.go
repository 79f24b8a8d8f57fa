package ckptlog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/memstore"
)

var (
	rivalSeed = flag.Uint64("rivals.seed", 0, "run TestRivals with this seed only")
	rivalRuns = flag.Int("rivals.runs", 600, "schedules that TestRivals tries")
)

// TestRivals lets several owners of one job run against each other, every call of
// the store failing in every way, owners being killed and power being lost, and
// checks what the log is for: all that was ever committed lies on one branch, and
// nothing is built on what was rolled back.
func TestRivals(t *testing.T) {
	first := rand.Uint64() >> 1
	runs := uint64(*rivalRuns)
	if testing.Short() {
		runs = min(runs, 150)
	}
	if *rivalSeed != 0 {
		first, runs = *rivalSeed, 1
	}
	t.Logf("seeds %d to %d", first, first+runs-1)
	var total tally
	for seed := first; seed < first+runs; seed++ {
		w := newWorld(seed)
		w.run()
		if w.breach != "" {
			t.Fatalf("-rivals.seed=%d: %s\n%s", seed, w.breach, strings.Join(w.trace, "\n"))
		}
		total.add(w.tally)
	}
	t.Logf("%+v", total)
	if *rivalSeed == 0 && (total.appended == 0 || total.voided == 0 || total.fenced == 0 || total.undecided == 0 || total.trimmed == 0 || total.crashes == 0) {
		t.Errorf("something never happened: %+v", total)
	}
}

// tally counts what the schedules visited.
type tally struct {
	starts, appended, notWritten, voided, undecided, fenced, trimmed, disposed, crashes int
}

func (a *tally) add(b tally) {
	a.starts += b.starts
	a.appended += b.appended
	a.notWritten += b.notWritten
	a.voided += b.voided
	a.undecided += b.undecided
	a.fenced += b.fenced
	a.trimmed += b.trimmed
	a.disposed += b.disposed
	a.crashes += b.crashes
}

// world is one schedule: owners as coroutines over one disk, and an oracle that
// knows nothing of the log.
type world struct {
	r      *rand.Rand
	disk   *memstore.Disk
	owners []*owner
	tally  tally
	nonces uint64

	// The oracle. A checkpoint is known by the name of its manifest.
	parent     map[string]string
	committed  map[string]bool
	rolledBack map[string]bool
	breach     string
	trace      []string
}

type owner struct {
	name string
	next func() (struct{}, bool)
	stop func()
}

func newWorld(seed uint64) *world {
	return &world{
		r: rand.New(rand.NewPCG(seed, 7)), disk: memstore.NewDisk(),
		parent: map[string]string{}, committed: map[string]bool{}, rolledBack: map[string]bool{},
	}
}

func (w *world) run() {
	defer func() {
		for _, o := range w.owners {
			o.stop()
		}
	}()
	turn := 0 // runs on for a while, so that the others are paused for long
	for range 400 {
		if w.breach != "" {
			return
		}
		switch n := w.r.IntN(100); {
		case len(w.owners) == 0 || n < 4 && len(w.owners) < 4 && w.tally.starts < 8:
			w.start()
		case n < 5:
			w.disk.Land()
		case n < 6: // killed: never scheduled again
			i := w.r.IntN(len(w.owners))
			w.logf("%s is killed", w.owners[i].name)
			w.drop(i)
		case n < 7 && w.r.IntN(2) == 0:
			w.tally.crashes++
			w.logf("power is lost")
			w.disk.Crash(func(memstore.Loss, string) bool { return w.r.IntN(2) == 0 })
			for len(w.owners) > 0 {
				w.drop(0)
			}
		default:
			if turn >= len(w.owners) || w.r.IntN(20) == 0 {
				turn = w.r.IntN(len(w.owners))
			}
			if _, more := w.owners[turn].next(); !more {
				w.drop(turn)
			}
		}
	}
}

func (w *world) drop(i int) {
	w.owners[i].stop()
	w.owners = append(w.owners[:i], w.owners[i+1:]...)
}

func (w *world) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf(format, args...))
}

type killed struct{}

// start begins an owner that switches at each call of the store.
func (w *world) start() {
	w.tally.starts++
	name := fmt.Sprintf("owner%d", w.tally.starts)
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if p := recover(); p != nil {
				if _, ok := p.(killed); !ok {
					w.breach = fmt.Sprintf("%s panics: %v", name, p)
				}
			}
		}()
		pause := func() {
			if !yield(struct{}{}) {
				panic(killed{})
			}
		}
		s := w.disk.Open()
		s.Yield = func(op memstore.Op) { pause() }
		s.Hook = func(op memstore.Op) memstore.Outcome {
			out := w.fate(op)
			w.logf("%s: %s, fate %d", name, op, out.Fate)
			return out
		}
		w.own(name, s, pause)
	})
	w.owners = append(w.owners, &owner{name, next, stop})
}

func (w *world) fate(op memstore.Op) memstore.Outcome {
	n := w.r.IntN(100)
	switch op.Verb {
	case memstore.Create:
		switch {
		case n < 10:
			return memstore.Outcome{Fate: memstore.LoseReply}
		case n < 20:
			return memstore.Outcome{Fate: memstore.LoseRequest}
		case n < 35:
			return memstore.Outcome{Fate: memstore.Delay, After: w.r.IntN(60)}
		case n < 40:
			return memstore.Outcome{Fate: memstore.Refuse}
		case n < 42:
			return memstore.Outcome{Fate: memstore.LoseReply, Err: storage.ErrExists}
		}
	case memstore.Delete:
		switch {
		case n < 5:
			return memstore.Outcome{Fate: memstore.Delay, After: w.r.IntN(30)}
		case n < 10:
			return memstore.Outcome{Fate: memstore.Refuse}
		}
	default:
		if n < 5 {
			return memstore.Unreachable()
		}
	}
	return memstore.Outcome{}
}

// own is the life of an owner: take over, commit what is restored, append
// checkpoints and act on the outcome, trim.
func (w *world) own(name string, s *memstore.Store, pause func()) {
	ctx := context.Background()
	c := Config{
		Store: s, Owner: name,
		Nonce: func() [16]byte {
			w.nonces++
			return [16]byte{byte(w.nonces), byte(w.nonces >> 8), byte(w.nonces >> 16)}
		},
		Wait: func(context.Context, int) error {
			if w.r.IntN(3) == 0 {
				return errEnough
			}
			pause()
			return nil
		},
	}
	l, v, err := TakeOver(ctx, c, genesis)
	if err != nil {
		w.corruptIs(name, err)
		w.logf("%s: take over: %v", name, err)
		return
	}
	latest, _ := v.Latest()
	w.restore(name, latest.Manifest.Name)
	for i := range 12 {
		pause()
		// What is restored or appended later is compared to this.
		v := l.View()
		latest, _ := v.Latest()
		switch w.r.IntN(8) {
		case 0:
			if err := l.Trim(ctx); err == nil {
				w.tally.trimmed++
			} else if w.over(l, name, err) {
				return
			}
			continue
		case 1:
			ids := v.Disposable(1)
			if err := l.Append(ctx, Dispose{ids}); err == nil {
				w.tally.disposed += len(ids)
			} else if w.over(l, name, err) {
				return
			}
			continue
		}
		id := v.NextID()
		key := fmt.Sprintf("%s-%d-%d", name, i, id)
		w.parent[key] = latest.Manifest.Name
		rec := Checkpoint{
			ID: id, Parent: latest.ID, Epoch: checkpoint.Epoch{Generation: l.Generation(), Attempt: 1}, Manifest: Manifest{Name: key},
		}
		err := l.Append(ctx, rec)
		for errors.Is(err, ErrUndecided) {
			w.tally.undecided++
			pause()
			if w.r.IntN(2) == 0 {
				err = l.Retry(ctx)
			} else {
				err = l.GiveUp(ctx)
			}
		}
		switch {
		case err == nil:
			w.tally.appended++
			w.commit(name, key)
		case errors.Is(err, ErrVoided):
			w.tally.voided++
			w.rollBack(name, key)
		case errors.Is(err, storage.ErrNotWritten):
			w.tally.notWritten++
			w.rollBack(name, key)
		default:
			w.over(l, name, err)
			return
		}
	}
}

// over decides an undecided record that is no checkpoint, and says whether the
// owner has to stop.
func (w *world) over(l *Log, name string, err error) bool {
	for errors.Is(err, ErrUndecided) {
		err = l.GiveUp(context.Background())
	}
	w.corruptIs(name, err)
	if errors.Is(err, ErrFenced) {
		w.tally.fenced++
		w.logf("%s: %v", name, err)
		return true
	}
	return l.dead != nil
}

func (w *world) corruptIs(name string, err error) {
	if errors.Is(err, ErrCorrupt) || errors.Is(err, ErrRefused) {
		w.breach = fmt.Sprintf("%s: %v", name, err)
	}
}

// restore rolls back what is not on the branch of key, as a starter does with
// what its predecessors left, and commits the rest.
func (w *world) restore(name, key string) {
	w.logf("%s restores %q", name, key)
	w.commit(name, key)
}

func (w *world) commit(name, key string) {
	if key == "" {
		if len(w.committed) > 0 {
			w.breach = fmt.Sprintf("%s starts empty, but %d checkpoints were committed", name, len(w.committed))
		}
		return
	}
	w.logf("%s commits %s", name, key)
	branch := map[string]bool{}
	for k := key; k != ""; k = w.parent[k] {
		branch[k] = true
		if w.rolledBack[k] {
			w.breach = fmt.Sprintf("LOST: %s commits %s, which stands on %s, which was rolled back", name, key, k)
		}
	}
	for other := range w.committed {
		if !branch[other] && !w.above(other, key) {
			w.breach = fmt.Sprintf("DUPLICATE: %s commits %s, but %s of another branch was committed", name, key, other)
		}
	}
	for k := range branch {
		w.committed[k] = true
	}
}

// above says whether a is built on b.
func (w *world) above(a, b string) bool {
	for ; a != ""; a = w.parent[a] {
		if a == b {
			return true
		}
	}
	return false
}

func (w *world) rollBack(name, key string) {
	w.logf("%s rolls %s back", name, key)
	if w.committed[key] {
		w.breach = fmt.Sprintf("LOST: %s rolls back %s, which was committed", name, key)
	}
	w.rolledBack[key] = true
}
