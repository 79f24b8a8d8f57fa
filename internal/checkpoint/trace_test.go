package checkpoint

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden traces in testdata")

// TestTraces replays each testdata/*.txt. A trace is a scenario: lines at the
// margin are events, indented ones what the state machine answers, "= state"
// where it stands afterwards. Run with -rewrite and read the diff.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(b))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(b) {
				t.Errorf("trace differs; got:\n%s", got)
			}
		})
	}
}

func replay(t *testing.T, trace string) string {
	var out strings.Builder
	var m machine
	now := int64(0)
	for n, line := range strings.Split(strings.TrimRight(trace, "\n"), "\n") {
		if strings.HasPrefix(line, " ") {
			continue // an answer: it is written anew
		}
		out.WriteString(line + "\n")
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if at, ok := strings.CutPrefix(words[0], "@"); ok {
			now = number(at)
			words = words[1:]
		}
		switch args := arguments(words[1:]); words[0] {
		case "barriers":
			m = &barriersMachine{NewBarriers(mode(words[1]), int(args.number("channels")), BarrierOptions{Restored: args.id("restored")})}
		case "coordinator":
			m = &coordinatorMachine{cfg: Config{
				Interval: time.Duration(args.number("interval")), Timeout: time.Duration(args.number("timeout")),
				MinPause: time.Duration(args.number("pause")), FailAfter: int(args.number("fail")), Retain: int(args.number("retain")),
				NextID: args.id("next"), Restored: args.id("restored"), Epoch: Epoch{7, 1},
			}}
		default:
			if m == nil {
				t.Fatalf("line %d: no state machine", n+1)
			}
			for _, a := range answer(m, now, words[0], words[1:]) {
				out.WriteString("    " + a + "\n")
			}
		}
	}
	return out.String()
}

// answer returns the actions and the state, or the panic.
func answer(m machine, now int64, verb string, words []string) (lines []string) {
	defer func() {
		if r := recover(); r != nil {
			lines = append(lines, fmt.Sprintf("panic: %v", r))
		}
	}()
	actions, ok := m.event(now, verb, words)
	if !ok {
		return nil
	}
	for _, a := range actions {
		lines = append(lines, a.String())
	}
	return append(lines, "= "+m.String())
}

type machine interface {
	fmt.Stringer
	event(now int64, verb string, words []string) (as []Action, ok bool)
}

type barriersMachine struct{ *Barriers }

func (m *barriersMachine) event(now int64, verb string, words []string) ([]Action, bool) {
	arg := func(i int) string { return words[i] }
	id := func(i int) ID { return ID(number(arg(i))) }
	switch verb {
	case "barrier":
		return m.Barrier(int(number(arg(0))), barrier(words[1:]), now), true
	case "cancel":
		return m.Cancel(int(number(arg(0))), id(1)), true
	case "end":
		return m.EndOfInput(int(number(arg(0))), now), true
	case "trigger":
		return m.Trigger(barrier(words), now), true
	case "prepared":
		return m.Prepared(id(0), now), true
	case "fail":
		return m.Fail(id(0), reason(arg(1)), strings.Join(words[2:], " ")), true
	case "limit":
		return m.LimitExceeded(strings.Join(words, " ")), true
	case "abort":
		a := Abort{ID: id(0), Reason: Expired}
		a.LatestComplete = arguments(words).id("latest")
		return m.Abort(a), true
	case "complete":
		return m.Complete(id(0)), true
	case "counters":
		return []Action{text(fmt.Sprintf("%+v", m.Counters()))}, true
	}
	panic("verb " + verb)
}

// text lets a trace print what is no action.
type text string

func (text) action()          {}
func (s text) String() string { return string(s) }

type coordinatorMachine struct {
	cfg Config
	c   *Coordinator
}

func (m *coordinatorMachine) String() string { return m.c.State() }

func (m *coordinatorMachine) event(now int64, verb string, words []string) ([]Action, bool) {
	args := arguments(words)
	switch verb {
	case "subtask": // subtask NAME [source] [inputs=a/0,b/0]
		plan := SubtaskPlan{ID: subtaskID(words[0]), Source: args.has("source")}
		for in := range strings.SplitSeq(args["inputs"], ",") {
			if in != "" {
				plan.Inputs = append(plan.Inputs, subtaskID(in))
			}
		}
		m.cfg.Subtasks = append(m.cfg.Subtasks, plan)
		return nil, false
	case "retained":
		m.cfg.Retained = append(m.cfg.Retained, Retained{ID(number(words[0])), !args.has("branch"), args.has("committed"), args.has("pinned")})
		return nil, false
	}
	if m.c == nil {
		m.c = NewCoordinator(m.cfg)
	}
	if verb == "counters" {
		return []Action{text(fmt.Sprintf("%+v", m.c.Counters()))}, true
	}
	if verb == "ready" && words[0] == "all" {
		var as []Action
		for _, s := range m.cfg.Subtasks {
			as = append(as, m.c.Handle(now, SubtaskReady{s.ID})...)
		}
		return as, true
	}
	if verb == "acks" { // acks ID a/0 b/0
		var as []Action
		for _, s := range words[1:] {
			as = append(as, m.c.Handle(now, m.ack(words[0], s, nil))...)
		}
		return as, true
	}
	return m.c.Handle(now, m.parse(verb, words, args)), true
}

func (m *coordinatorMachine) ack(id, subtask string, args values) Acked {
	a := Ack{Subtask: subtaskID(subtask), Epoch: m.cfg.Epoch, ID: ID(number(id)), Stats: SubtaskStats{Bytes: args.number("bytes")}}
	if args.has("attempt") {
		a.Epoch.Attempt = uint64(args.number("attempt"))
	}
	if strings.HasPrefix(subtask, "sink") && !args.has("nothing") {
		a.Operators = []OperatorAck{{Operator: "sink", Committables: []Committable{{ID: "t", Prepared: a.ID}}}}
	}
	return Acked{a}
}

func (m *coordinatorMachine) parse(verb string, words []string, args values) Event {
	id := func() ID { return ID(number(words[0])) }
	rest := func(n int) string { return strings.Join(words[n:], " ") }
	switch verb {
	case "started":
		return Started{}
	case "due":
		return Due{}
	case "expired":
		return TimerFired{id()}
	case "request":
		return TriggerRequested{words[0] == "savepoint", words[1]}
	case "stop":
		return StopRequested{words[0] == "savepoint", words[1]}
	case "enumerated":
		return EnumeratorsSnapshotted{id()}
	case "enumerators-failed":
		return EnumeratorsFailed{id(), rest(1)}
	case "ack":
		return m.ack(words[0], words[1], args)
	case "decline":
		d := Decline{Subtask: subtaskID(words[1]), Epoch: m.cfg.Epoch, ID: id(), Reason: reason(words[2]), Detail: rest(3)}
		if args.has("attempt") {
			d.Epoch.Attempt, d.Detail = uint64(args.number("attempt")), ""
		}
		return DeclinedBy{d}
	case "published":
		return Published{ID: id()}
	case "publish-failed":
		return Published{id(), errors.New(rest(1))}
	case "appended":
		return Appended{id()}
	case "undecided":
		return Undecided{id()}
	case "voided":
		return AppendVoided{id(), errors.New(rest(1))}
	case "sinks-committed":
		return SinksCommitted{id()}
	case "sinks-failed":
		return SinksFailed{id(), rest(1)}
	case "committed-appended":
		return CommittedAppended{id()}
	case "pinned":
		return Pinned{id()}
	case "unpinned":
		return Unpinned{id()}
	case "ready":
		return SubtaskReady{subtaskID(words[0])}
	case "ended":
		return SubtaskEnded{subtaskID(words[0])}
	case "attempt-ended":
		return AttemptEnded{}
	case "fenced":
		return Fenced{}
	}
	panic("verb " + verb)
}

// values are the key=value words of a line; a bare word is its own key.
type values map[string]string

func arguments(words []string) values {
	v := make(values)
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		v[key] = value
	}
	return v
}

func (v values) has(key string) bool { _, ok := v[key]; return ok }
func (v values) id(key string) ID    { return ID(v.number(key)) }

func (v values) number(key string) int64 {
	if v[key] == "" {
		return 0
	}
	return number(v[key])
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func barrier(words []string) Barrier {
	bar := Barrier{ID: ID(number(words[0]))}
	args := arguments(words[1:])
	if args.has("savepoint") {
		bar.Kind = Savepoint
	}
	if args.has("final") {
		bar.Kind = Final
	}
	bar.AgeNanos = args.number("age")
	return bar
}

func subtaskID(s string) SubtaskID {
	vertex, index, _ := strings.Cut(s, "/")
	return SubtaskID{vertex, int(number(index))}
}

func mode(s string) Mode {
	for _, m := range []Mode{ExactlyOnce, AtLeastOnce, AtMostOnce} {
		if m.String() == s {
			return m
		}
	}
	panic("mode " + s)
}

func reason(s string) Reason {
	for r := Declined; int(r) < len(reasonNames); r++ {
		if strings.ReplaceAll(r.String(), " ", "-") == s {
			return r
		}
	}
	panic("reason " + s)
}
