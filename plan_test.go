package staunch_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/file"
	"github.com/staunchdev/staunch/connector/stdio"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

type event struct {
	ID, User string
	N        int64
}

// upsert is an idempotent sink that is planned only.
type upsert struct {
	connector.Sink[event]
}

func (u upsert) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Idempotent, Key: []string{"user"}, System: "sqlite totals.db totals"}
}

// wide is a job with every kind of edge and operator.
func wide() *staunch.Job {
	bad := staunch.NewSide[staunch.Failed[string]]("bad")
	j := staunch.NewJob("wide")
	lines := staunch.From(j, "lines", file.Lines("in"), staunch.Parallelism(1))
	events := staunch.TryMap(lines, func(string) (event, error) { return event{}, nil }, staunch.DeadLetter(bad), staunch.Named("parse"))
	staunch.To(staunch.SideOf(events, bad), "bad", file.NewSink("bad", codec.JSON[staunch.Failed[string]]()))
	more := staunch.FromSlice(j, "more", []event{{}})
	all := staunch.Filter(staunch.Union(events, more), func(event) bool { return true })
	once := staunch.Distinct(staunch.KeyBy(all, func(e event) string { return e.ID }), "once", staunch.Forget(24*time.Hour))
	sums := staunch.Reduce(staunch.KeyBy(once, func(e event) string { return e.User }), "sums",
		func(a, e event) event { a.N += e.N; return a }, staunch.FormerNames("totals", "sum"))
	staunch.To(sums, "users", upsert{})
	counts := staunch.Process(staunch.KeyBy(once, func(e event) string { return e.User }), "bursts", newBurst, staunch.NoChain())
	staunch.To(staunch.Rebalance(staunch.Map(counts, func(n int64) int64 { return n })), "print", stdio.Print[int64](), staunch.Parallelism(3))
	return j
}

type burst struct{ quiet staunch.Timer }

func newBurst(s *staunch.Setup) *burst {
	s.Declare(staunch.Nondeterministic)
	return &burst{quiet: s.ProcessingTimer("quiet")}
}

func (b *burst) Process(c *staunch.Ctx[int64], _ string, e event) error {
	b.quiet.Set(c.Now().Add(time.Second))
	return nil
}

func (b *burst) OnTimer(c *staunch.Ctx[int64], _ string, t staunch.Timer) error {
	c.Emit(1)
	return nil
}

func TestPlanText(t *testing.T) {
	for _, tt := range []struct {
		name string
		job  func() *staunch.Job
		o    staunch.Options
	}{
		{"wide", wide, staunch.Options{Parallelism: 2}},
		{"wide-at-least-once", wide, staunch.Options{Parallelism: 2, Mode: staunch.AtLeastOnce, Checkpoint: staunch.CheckpointOptions{Interval: -1}}},
		{"wide-at-most-once", wide, staunch.Options{Parallelism: 1, Mode: staunch.AtMostOnce, Checkpoint: staunch.CheckpointOptions{Alignment: staunch.Aligned}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := tt.job().Plan(tt.o)
			if err != nil {
				t.Fatal(err)
			}
			got := []byte(p.String())
			golden := filepath.Join("testdata", "plan-"+tt.name+".txt")
			if *rewrite {
				if err := os.WriteFile(golden, got, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("plan differs (-want +got); -rewrite if it should:\n%s", cmp.Diff(string(want), string(got)))
			}
		})
	}
}

// Case D02: nothing random, no address and no map order is in a plan.
func TestTheSameProgramGivesTheSamePlan(t *testing.T) {
	first := ""
	for range 100 {
		p, err := wide().Plan(staunch.Options{Parallelism: 2})
		if err != nil {
			t.Fatal(err)
		}
		if s := p.String(); first == "" {
			first = s
		} else if s != first {
			t.Fatalf("two plans of one program:\n%s", cmp.Diff(first, s))
		}
	}
}
