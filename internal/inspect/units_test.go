package inspect

import (
	"encoding/json"
	"testing"
	"time"
)

func TestMillis(t *testing.T) {
	for _, tt := range []struct {
		d          time.Duration
		text, json string
	}{
		{0, "0 µs", "0"},
		{1500, "1 µs", "0.0015"},
		{1500 * time.Microsecond, "1.5 ms", "1.5"},
		{840 * time.Millisecond, "840 ms", "840"},
		{2390 * time.Millisecond, "2.3 s", "2390"},
		{64 * time.Second, "1 m 04 s", "64000"},
		{3*time.Hour + 5*time.Minute, "3 h 05 m", "11100000"},
		{50 * time.Hour, "2 d 02 h", "180000000"},
		{-time.Second, "-1.0 s", "-1000"},
	} {
		m := Millis(tt.d)
		b, err := json.Marshal(m)
		if m.String() != tt.text || string(b) != tt.json || err != nil {
			t.Errorf("%v: %s, %s, %v; want %s, %s", tt.d, m, b, err, tt.text, tt.json)
		}
		var back Millis
		if err := json.Unmarshal(b, &back); err != nil || back != m {
			t.Errorf("%s is read as %v, %v", b, back, err)
		}
	}
}

func TestSizeText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 3 << 29: "1.5 GiB", 1 << 62: "4096.0 PiB"} {
		if got := sizeText(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
