package staunch_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/staunchdev/staunch"
	"github.com/staunchdev/staunch/codec"
	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/stdio"
)

func toString(s string) string { return s }

// wantFaults checks that err lists every fault, and as many as are wanted.
func wantFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no fault, want %q", want)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("missing fault %q", w)
		}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); !ok || len(joined.Unwrap()) != len(want) {
		t.Errorf("want %d faults", len(want))
	}
	if t.Failed() {
		t.Logf("the error is:\n%v", err)
	}
}

// timed declares a timer, and its OnTimer is for another output.
type timed struct{ t staunch.Timer }

func (*timed) Process(*staunch.Ctx[string], string, string) error     { return nil }
func (*timed) OnTimer(*staunch.Ctx[int], string, staunch.Timer) error { return nil }
func (*timed) Open(context.Context) error                             { return nil }
func (*timed) Close()                                                 {}

type silent struct{}

func (silent) Process(*staunch.Ctx[string], string, string) error { return nil }

// forgetful says it is transactional and has no Commit.
type forgetful struct{ connector.Sink[string] }

func (forgetful) Spec() connector.SinkSpec {
	return connector.SinkSpec{Kind: connector.Transactional, Fenced: true}
}

type hidden struct{ secret int }

func TestFaultsAreListed(t *testing.T) {
	bad := staunch.NewSide[staunch.Failed[int]]("bad")
	j := staunch.NewJob("")
	a := staunch.FromSlice(j, "a", []string{"x"})
	k := staunch.KeyBy(a, toString)
	staunch.Process(k, "a", func(s *staunch.Setup) *timed {
		s.ProcessingTimer("x")
		return &timed{s.ProcessingTimer("x")}
	})
	staunch.Process(k, "panics", func(*staunch.Setup) silent { panic("no I/O here") })
	staunch.Process[string, string, string, silent](k, "nil", nil)
	staunch.Map[string, int](a, nil)
	staunch.Filter(a, nil, staunch.Parallelism(0))
	staunch.Map(a, toString, staunch.Named("too wide"), staunch.Parallelism(1025))
	staunch.To(a, "", stdio.Print[string]())
	staunch.To[string](a, "nil sink", nil)
	staunch.To(a, "forgetful", forgetful{})
	staunch.From[string](j, "nil source", nil)
	staunch.TryMap(a, func(string) (int, error) { return 0, nil }, staunch.DeadLetter(bad))
	secrets := staunch.Map(a, func(string) hidden { return hidden{} }, staunch.Named("secrets"))
	staunch.Filter(secrets, func(hidden) bool { return true }, staunch.Forget(time.Hour))
	staunch.KeyBy(a, func(string) float64 { return 0 })
	staunch.Reduce(staunch.KeyBy(secrets, func(hidden) string { return "" }), "reduce", func(a, _ hidden) hidden { return a })
	staunch.Union(a, staunch.FromSlice(staunch.NewJob("other"), "b", []string{"y"}))
	staunch.Map(a, toString, staunch.EdgeCodec(codec.JSON[int]()), nil)

	wantFaults(t, j.Err(),
		"the job has no name",
		`duplicate name "a": a source and a process`,
		`operator "a": state "x" is declared twice`,
		`operator "a" declares timer "x", but *staunch_test.timed has no OnTimer(*Ctx[string], string, Timer) error`,
		`operator "a": *staunch_test.timed has Open as func(*staunch_test.timed, context.Context) error, which is never called: it must be Open(context.Context, connector.Instance) error`,
		`operator "a": *staunch_test.timed has Close as func(*staunch_test.timed), which is never called: it must be Close() error`,
		`operator "panics": its constructor panics: no I/O here`,
		`operator "nil": the constructor is nil`,
		`map behind source "a": the function is nil`,
		`filter behind source "a": the function is nil`,
		`filter behind source "a": Parallelism(0): at least 1 is needed`,
		`operator "too wide": Parallelism(1025): at most 1024 are possible in one process`,
		"a sink has no name",
		`sink "nil sink" is nil`,
		`sink "forgetful" says Transactional but staunch_test.forgetful has no Commit and Recover`,
		`sink "forgetful" says Fenced but staunch_test.forgetful has no Fence`,
		`source "nil source" is nil`,
		`trymap behind source "a": DeadLetter takes Failed[int], but what fails is a string`,
		`trymap behind source "a": nobody reads its dead letters: take them with SideOf(..., side "bad")`,
		`operator "secrets": records cannot leave it without loss; give it an EdgeCodec: `,
		`filter behind operator "secrets": option Forget does not apply to a filter; it is for aggregate, distinct, latest`,
		`KeyBy behind source "a": a bad key: float64`,
		`operator "reduce": state "value": staunch_test.hidden would lose data`,
		`Union of source "a" with a stream of another job, behind source "b" of "other"`,
		`map behind source "a": option 2 is nil`,
		`map behind source "a": EdgeCodec is for int, but the records are string`,
	)
}

func TestAJobNeedsASink(t *testing.T) {
	j := staunch.NewJob("j")
	staunch.FromSlice(j, "a", []string{"x"})
	wantFaults(t, j.Err(), "no sink: end at least one stream with To")
}

func TestSideFaults(t *testing.T) {
	late := staunch.NewSide[string]("late")
	j := staunch.NewJob("j")
	a := staunch.FromSlice(j, "a", []string{"x"})
	p := staunch.Process(staunch.KeyBy(a, toString), "p", func(*staunch.Setup) silent { return silent{} })
	staunch.To(staunch.SideOf(a, late), "no side", stdio.Print[string]())
	staunch.To(staunch.SideOf(p, late), "late", stdio.Print[string]())
	staunch.To(staunch.SideOf(p, staunch.NewSide[int]("late")), "late as int", stdio.Print[int]())
	staunch.To(staunch.SideOf(staunch.Union(a, p), late), "of a union", stdio.Print[string]())
	wantFaults(t, j.Err(),
		`source "a" emits nothing to side "late"`,
		`operator "p": side "late" is read as string and as int`,
		`SideOf("late") of a union`,
	)
}

func TestOptionFaults(t *testing.T) {
	j := staunch.NewJob("j")
	staunch.To(staunch.FromSlice(j, "a", []string{"x"}), "out", stdio.Print[string]())
	for _, tt := range []struct {
		o    staunch.Options
		want string
	}{
		{staunch.Options{Parallelism: -1}, "Parallelism is -1"},
		{staunch.Options{Parallelism: 100_000_000}, "Parallelism is 100000000: at most 1024"},
		{staunch.Options{Checkpoint: staunch.CheckpointOptions{Alignment: staunch.Unaligned}}, "Unaligned comes in a later version"},
		{staunch.Options{Checkpoint: staunch.CheckpointOptions{Retain: -1}}, "Retain is -1"},
		{staunch.Options{State: staunch.StateOptions{Backend: staunch.Pebble}}, "state backend Pebble: this version has no such backend (it has: Heap)"},
		{staunch.Options{State: staunch.StateOptions{CacheBytes: 1}}, "for backend Pebble"},
		{staunch.Options{Storage: "s3://bucket/p"}, `storage "s3://bucket/p": scheme "s3" is not linked: this version has no such store (it has: file, mem)`},
		{staunch.Options{Checkpoint: staunch.CheckpointOptions{Timeout: -time.Second}}, "Checkpoint.Timeout is -1s: "},
		{staunch.Options{Checkpoint: staunch.CheckpointOptions{MinPause: -2}}, "Checkpoint.MinPause is -2ns: "},
		{staunch.Options{Checkpoint: staunch.CheckpointOptions{AlignmentTimeout: -3}}, "Checkpoint.AlignmentTimeout is -3ns: "},
		{staunch.Options{From: "latest"}, `From "latest" is no checkpoint id`},
		{staunch.Options{From: "3", Fresh: true}, "exclude each other"},
		{staunch.Options{Listen: ":80"}, "Listen comes in a later version"},
		{staunch.Options{NoClaim: true}, "NoClaim comes in a later version"},
		{staunch.Options{Mode: 9}, "unknown Mode guarantee(9)"},
	} {
		if _, err := j.Plan(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.o, err, tt.want)
		}
	}
	if _, err := j.Plan(staunch.Options{Parallelism: -1, Listen: ":80"}); err == nil || !strings.Contains(err.Error(), "Parallelism") || !strings.Contains(err.Error(), "Listen") {
		t.Errorf("not all faults are listed: %v", err)
	}
}

func TestRequireNamesWhatBreaksIt(t *testing.T) {
	j := staunch.NewJob("j")
	staunch.To(staunch.FromSlice(j, "a", []string{"x"}), "out", &stdio.Sink[string]{W: io.Discard, Format: toString})
	_, err := staunch.Run(t.Context(), j, staunch.Options{Storage: "mem:", Require: staunch.ExactlyOnce})
	if err == nil || !strings.Contains(err.Error(), `job "j" delivers at-least-once, but exactly-once is required`) || !strings.Contains(err.Error(), "out: at-least-once") {
		t.Errorf("got %v", err)
	}
	if strings.Contains(err.Error(), "a: replayable") {
		t.Errorf("names a link that holds: %v", err)
	}
}

func TestZeroStreamPanics(t *testing.T) {
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, "Map of a zero Stream") {
			t.Errorf("got %v", r)
		}
	}()
	staunch.Map(staunch.Stream[string]{}, toString)
}
