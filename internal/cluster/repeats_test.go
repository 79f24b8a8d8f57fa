package cluster

import (
	"testing"
	"time"
)

// The first is said at once, then one a minute with how many there were; what
// differs by names and numbers only is the same, and anything else is not.
func TestRepeats(t *testing.T) {
	var r repeats
	for _, tt := range []struct {
		at   time.Duration
		text string
		say  bool
		more int
	}{
		{0, "write obj/L0-A1-17ab: gone", true, 0},
		{time.Second, "write obj/L0-A1-99cd: gone", false, 0},
		{2 * time.Second, "write obj/L0-A1-99ce: full", true, 0},
		{59 * time.Second, "write obj/L0-A2-0000: gone", false, 0},
		{60 * time.Second, "write obj/L0-A2-0001: gone", true, 2},
		{119 * time.Second, "write obj/L0-A2-0002: gone", false, 0},
		{120 * time.Second, "write obj/L0-A2-0003: gone", true, 1},
		{time.Hour, "write obj/L0-A2-0003: gone", true, 0},
	} {
		if say, more := r.again(int64(tt.at), tt.text); say != tt.say || more != tt.more {
			t.Errorf("%v, %q: %v, %d more, want %v, %d", tt.at, tt.text, say, more, tt.say, tt.more)
		}
	}
	if len(r.said) != 1 {
		t.Errorf("%d texts are remembered", len(r.said))
	}
}
