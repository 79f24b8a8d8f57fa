package cluster

import "testing"

func TestRestartDelayGrowsToItsCap(t *testing.T) {
	p := RestartPolicy{Delay: 100, MaxDelay: 500, Factor: 2}
	for consecutive, want := range []int64{100, 200, 400, 500, 500} {
		r := restartState{consecutive: consecutive}
		if got := r.delay(p, 0); int64(got) != want {
			t.Errorf("restart %d without jitter: %d, want %d", consecutive, got, want)
		}
		if got := r.delay(p, 255); int64(got) != want*11/10 {
			t.Errorf("restart %d with all jitter: %d, want %d", consecutive, got, want*11/10)
		}
	}
	fixed := RestartPolicy{Delay: 100, MaxDelay: 500, Factor: 1}
	if got := (restartState{consecutive: 7}).delay(fixed, 255); got != 100 {
		t.Errorf("fixed delay: %d", got)
	}
}
