package kill

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/state"
)

// Two channels lead into an operator. B's barrier is held back by a function
// that does not return; A's has arrived, and k records behind it. At least once,
// these are processed, so they are in the snapshot and are read again after a
// crash: exactly k duplicates. Exactly once, the channel is blocked: none.
func TestScriptedDuplicates(t *testing.T) {
	t.Parallel()
	var told []string
	for _, k := range []int{0, 1, 7, 300, 3000} {
		for _, mode := range []staunch.Guarantee{staunch.AtLeastOnce, staunch.ExactlyOnce} {
			s := newScript(k)
			s.run(t, mode)
			repeated, missing := s.count()
			want := 0
			if mode == staunch.AtLeastOnce {
				want = k
			}
			told = append(told, fmt.Sprintf("%v k=%d: %d", mode, k, repeated))
			if repeated != want || missing != 0 {
				t.Errorf("%v, %d records past the barrier: %d duplicates, want %d; %d missing", mode, k, repeated, want, missing)
			}
		}
	}
	t.Logf("accept: duplicates: %v", told)
}

const (
	beforeA = 5 // of A's records, before the barrier
	beforeB = 1 // of B's records: it is held, and nothing is behind the barrier after it
	rest    = 4 // of each, after the restart
)

// script is the job and what moves it on.
type script struct {
	k        int
	a, b     *tape
	atA      chan struct{} // A's barrier is about to leave its source
	held     chan struct{} // closed: B's record has come to where it is held
	hold     chan struct{} // closed: B's records go on
	seen     chan string   // what the operator has processed
	mark     *committed
	ledger   *committed
	storage  string
	restored bool
}

// scripts numbers their stores, which live as long as the process.
var scripts atomic.Int64

func newScript(k int) *script {
	s := &script{
		k: k,
		a: newTape("a", beforeA+k+rest), b: newTape("b", beforeB+rest),
		atA: make(chan struct{}), held: make(chan struct{}), hold: make(chan struct{}), seen: make(chan string, 2*(beforeA+beforeB+k+2*rest)),
		ledger: newCommitted(nil),
	}
	s.mark = newCommitted(func() {
		if !s.restored {
			close(s.atA)
		}
	})
	s.storage = fmt.Sprintf("mem:scripted-%d", scripts.Add(1))
	return s
}

func (s *script) job() *staunch.Job {
	j := staunch.NewJob("scripted")
	a := staunch.From(j, "a", s.a.source(), staunch.Parallelism(1))
	b := staunch.From(j, "b", s.b.source(), staunch.Parallelism(1))
	// The sink is chained to its source: it prepares when the barrier is at A.
	staunch.To(a, "mark", s.mark, staunch.Parallelism(1))
	held := staunch.Map(b, func(id string) string {
		if !s.restored && id == s.b.ids[0] {
			close(s.held)
		}
		<-s.hold
		return id
	}, staunch.Parallelism(1))
	all := staunch.Union(a, held)
	counted := staunch.Process(staunch.KeyBy(all, func(id string) string { return id[:1] }), "count", s.newCount, staunch.Parallelism(1))
	staunch.To(counted, "ledger", s.ledger, staunch.Parallelism(1))
	return j
}

func (s *script) newCount(setup *staunch.Setup) staunch.ProcessFunc[string, string, string] {
	n := state.NewValue[int64](setup, "n")
	return func(c *staunch.Ctx[string], _ string, id string) error {
		n.Set(n.Get() + 1)
		c.Emit(id)
		s.seen <- id
		return nil
	}
}

func (s *script) run(t *testing.T, mode staunch.Guarantee) {
	t.Helper()
	options := staunch.Options{
		Storage: s.storage, Mode: mode, Restart: staunch.NoRestart(), Log: slog.New(slog.DiscardHandler),
		Checkpoint: staunch.CheckpointOptions{Interval: -1, Alignment: staunch.Aligned},
	}
	ctx, crash := context.WithCancel(t.Context())
	defer crash()
	x, err := staunch.Start(ctx, s.job(), options)
	if err != nil {
		t.Fatal(err)
	}
	s.a.release(beforeA)
	s.b.release(beforeB)
	s.await(t, beforeA)
	<-s.held // else B's barrier could leave before its record was read

	done := make(chan error, 1)
	go func() {
		_, err := x.Checkpoint(ctx)
		done <- err
	}()
	<-s.atA
	s.a.release(beforeA + s.k)
	if mode == staunch.AtLeastOnce {
		s.await(t, s.k)
	}
	close(s.hold)
	if err := <-done; err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	crash()
	if _, err := x.Wait(); err != nil {
		t.Fatal(err)
	}

	s.restored = true
	s.a.release(beforeA + s.k + rest)
	s.b.release(beforeB + rest)
	r, err := staunch.Run(t.Context(), s.job(), options)
	if err != nil {
		t.Fatal(err)
	}
	if r.RestoredFrom == 0 {
		t.Fatal("the second run was not restored")
	}
}

// await waits until n more records were processed.
func (s *script) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-s.seen:
		case <-t.Context().Done():
			t.Fatal("the records did not come")
		}
	}
}

func (s *script) count() (repeated, missing int) {
	n := map[string]int{}
	for _, id := range s.ledger.lines() {
		n[id]++
	}
	for _, id := range append(slices.Clone(s.a.ids), s.b.ids...) {
		if n[id] == 0 {
			missing++
		}
		repeated += max(n[id]-1, 0)
	}
	return repeated, missing
}

// tape is a source of one split that gives what was released.
type tape struct {
	ids      []string
	mu       sync.Mutex
	released int
	ready    chan struct{}
}

func newTape(name string, n int) *tape {
	t := &tape{ready: make(chan struct{}, 1)}
	for i := range n {
		t.ids = append(t.ids, fmt.Sprintf("%s-%d", name, i))
	}
	return t
}

// release lets the first n records through.
func (t *tape) release(n int) {
	t.mu.Lock()
	t.released = n
	t.mu.Unlock()
	select {
	case t.ready <- struct{}{}:
	default:
	}
}

func (t *tape) source() connector.Source[string] { return tapeSource{t} }

type tapeSource struct{ t *tape }

func (tapeSource) Spec() connector.SourceSpec {
	return connector.SourceSpec{Replayable: true, Bounded: true, System: "tape"}
}

func (tapeSource) Enumerator(context.Context, connector.Instance) (connector.Enumerator, error) {
	return &tapeEnumerator{}, nil
}

func (s tapeSource) Reader(context.Context, connector.Instance) (connector.Reader[string], error) {
	return &tapeReader{t: s.t}, nil
}

// tapeEnumerator finds the split once; its state says that it has.
type tapeEnumerator struct{ found bool }

func (e *tapeEnumerator) Discover(context.Context) ([]connector.Split, bool, error) {
	if e.found {
		return nil, false, nil
	}
	e.found = true
	return []connector.Split{{ID: "tape"}}, false, nil
}

func (e *tapeEnumerator) Snapshot() ([]byte, error) { return fmt.Append(nil, e.found), nil }

func (e *tapeEnumerator) Restore(b []byte) error {
	e.found = string(b) == "true"
	return nil
}

func (e *tapeEnumerator) Close() error { return nil }

type tapeReader struct {
	t    *tape
	next int64
}

func (r *tapeReader) Add(s connector.Split) error {
	r.next = s.Next.N
	return nil
}

func (r *tapeReader) Poll(b *connector.Batch[string], max int) (string, connector.Offset, error) {
	r.t.mu.Lock()
	defer r.t.mu.Unlock()
	if r.next == int64(len(r.t.ids)) {
		return "tape", connector.Offset{N: r.next}, io.EOF
	}
	n := min(int64(r.t.released), r.next+int64(max))
	if r.next >= n {
		return "", connector.Offset{}, connector.ErrEmpty
	}
	b.Values = append(b.Values, r.t.ids[r.next:n]...)
	r.next = n
	return "tape", connector.Offset{N: n}, nil
}

func (r *tapeReader) Available() <-chan struct{} { return r.t.ready }
func (r *tapeReader) Close() error               { return nil }

// committed is a transactional sink that lives longer than a run.
type committed struct {
	onPrepare func()
	mu        sync.Mutex
	n         int
	prepared  map[string][]string
	visible   []string
}

func newCommitted(onPrepare func()) *committed {
	return &committed{onPrepare: onPrepare, prepared: map[string][]string{}}
}

func (c *committed) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Transactional, System: "memory"}
}

func (c *committed) Writer(context.Context, connector.Instance) (connector.Writer[string], error) {
	return &committedWriter{c: c}, nil
}

func (c *committed) Commit(_ context.Context, cs []connector.Committable) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range cs {
		c.visible = append(c.visible, c.prepared[x.ID]...)
		delete(c.prepared, x.ID)
	}
	return nil
}

func (c *committed) Recover(ctx context.Context, _ connector.Instance, pending []connector.Committable) error {
	return c.Commit(ctx, pending)
}

func (c *committed) lines() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.visible)
}

type committedWriter struct {
	c       *committed
	written []string
}

func (w *committedWriter) Write(_ context.Context, b connector.Batch[string]) error {
	w.written = append(w.written, b.Values...)
	return nil
}

func (w *committedWriter) Prepare(context.Context, connector.CheckpointID) ([]connector.Committable, error) {
	if w.c.onPrepare != nil {
		w.c.onPrepare()
	}
	if len(w.written) == 0 {
		return nil, nil
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.n++
	id := fmt.Sprint(w.c.n)
	w.c.prepared[id], w.written = w.written, nil
	return []connector.Committable{{ID: id}}, nil
}

func (w *committedWriter) Close() error { return nil }
