package operator

import (
	"testing"
	"time"
)

// drive polls a rate as a subtask would for some time, and returns how many
// records it let through.
func drive(r *rate, now *int64, d time.Duration, limit int) (total int) {
	end := *now + int64(d)
	for *now < end {
		n, when := r.allow(*now, limit)
		if n == 0 {
			*now = when
			continue
		}
		r.take(n)
		total += n
	}
	return total
}

func TestRateIsExactOverTime(t *testing.T) {
	for _, tt := range []struct {
		perSecond   int64
		parallelism int
		want        int // in 10 s
	}{{1, 1, 10}, {7, 2, 35}, {1000, 4, 2500}, {3_000_000, 2, 15_000_000}, {999_983, 1, 9_999_830}} {
		r, now := newRate(tt.perSecond, tt.parallelism), int64(0)
		got := drive(&r, &now, 10*time.Second, 1024)
		if slack := tt.want/1000 + 1; got < tt.want-slack || got > tt.want+slack {
			t.Errorf("%d a second over %d subtasks: %d in 10 s, want %d", tt.perSecond, tt.parallelism, got, tt.want)
		}
	}
}

func TestNoBurstFollowsAPause(t *testing.T) {
	r, now := newRate(1000, 1), int64(0)
	drive(&r, &now, time.Second, 1024)
	now += int64(time.Minute)
	if n := drive(&r, &now, 100*time.Millisecond, 1024); n > 160 {
		t.Errorf("%d records in 100 ms after a pause of a minute", n)
	}
}

func TestNoRateIsNoLimit(t *testing.T) {
	r := newRate(0, 3)
	if n, _ := r.allow(0, 512); n != 512 {
		t.Errorf("%d", n)
	}
}
