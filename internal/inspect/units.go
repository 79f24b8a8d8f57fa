package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Millis is a duration that is a number of milliseconds in JSON, so that a name
// that ends in _ms tells the truth.
type Millis time.Duration

// MarshalJSON implements json.Marshaler.
func (m Millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(m)/1e6, 'f', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Millis) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("milliseconds: %w", err)
	}
	*m = Millis(f * 1e6)
	return nil
}

// String is for people: three digits, and a unit of which there is at least one.
func (m Millis) String() string {
	d := time.Duration(m)
	switch {
	case d < 0:
		return "-" + (-m).String()
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours())/24, int(d.Hours())%24)
}

// sizeText is a number of bytes in binary units.
func sizeText(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[unit])
}

const timeLayout = "2006-01-02 15:04:05.000"

// at is the time of a statistic; the zero Time if it did not happen.
func at(unixNanos int64) time.Time {
	if unixNanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, unixNanos).UTC()
}

// rangeText is an interval of hashes. Hashes are text also in JSON, where
// numbers have 53 bits.
func rangeText(r checkpoint.HashRange) string { return fmt.Sprintf("%016x-%016x", r.Lo, r.Hi) }

func kindText(k checkpoint.Kind) string {
	switch k {
	case checkpoint.Periodic:
		return "periodic"
	case checkpoint.Savepoint:
		return "savepoint"
	case checkpoint.Final:
		return "final"
	}
	return fmt.Sprintf("kind %d", k)
}

func subtaskTexts(ids []checkpoint.SubtaskID) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return out
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func join[T any](vs []T) string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = fmt.Sprint(v)
	}
	return strings.Join(out, ", ")
}

// counted is a number with its noun.
func counted[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
