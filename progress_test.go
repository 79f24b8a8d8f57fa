package staunch

import (
	"strings"
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	var out strings.Builder
	g := &progress{w: &out, sources: []string{"a", "b"}, bounded: true, at: time.Unix(100, 0)}
	m := map[string]int64{"a.records": 1500, "b.records": 500}
	g.metrics = func() map[string]int64 { return m }
	if got, want := g.line(time.Unix(102, 0)), "2000 records, 1000/s, no checkpoint yet"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	g.event(Checkpointed{ID: 7, Duration: 12345 * time.Microsecond, Bytes: 1_250_000})
	m["a.records"] = 2500
	if got, want := g.line(time.Unix(103, 0)), "3000 records, 1000/s, checkpoint 7: 12ms, 1.2 MB"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The bar is shown on a terminal only, and where the input is bounded.
func TestProgressBarNeedsBoundedInputAndTerminal(t *testing.T) {
	for _, tt := range []struct {
		terminal, bounded, want bool
	}{{true, true, true}, {true, false, false}, {false, true, false}} {
		g := &progress{terminal: tt.terminal, bounded: tt.bounded, at: time.Unix(1, 0)}
		g.metrics = func() map[string]int64 { return map[string]int64{"input.done_permille": 512} }
		line := g.line(time.Unix(2, 0))
		if got := strings.HasPrefix(line, "[==========          ]  51% "); got != tt.want {
			t.Errorf("terminal %v, bounded %v: line %q", tt.terminal, tt.bounded, line)
		}
	}
}

// What is said while a line of progress stands takes that line's place.
func TestSayClearsTheLineOfProgress(t *testing.T) {
	var out strings.Builder
	g := &progress{w: &out, terminal: true}
	g.print("12 records")
	g.say("resumed from checkpoint 3")
	if got, want := out.String(), "\r\x1b[K12 records\r\x1b[Kresumed from checkpoint 3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
