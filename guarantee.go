package staunch

import "fmt"

// Guarantee is what a mode gives, and what a job delivers end to end.
type Guarantee uint8

const (
	_           Guarantee = iota
	ExactlyOnce           // nothing lost, nothing counted twice
	AtLeastOnce           // nothing lost
	AtMostOnce            // nothing counted twice; what was reserved when the run stopped, in whatever way, is skipped
)

func (g Guarantee) String() string {
	switch g {
	case 0:
		return "none"
	case ExactlyOnce:
		return "exactly-once"
	case AtLeastOnce:
		return "at-least-once"
	case AtMostOnce:
		return "at-most-once"
	}
	return fmt.Sprintf("guarantee(%d)", uint8(g))
}

// MarshalText and UnmarshalText make a Guarantee a flag and a configuration
// value. The zero Guarantee is the empty text.
func (g Guarantee) MarshalText() ([]byte, error) {
	if g == 0 {
		return nil, nil
	}
	return []byte(g.String()), nil
}

// UnmarshalText reads exactly-once, at-least-once or at-most-once; empty: not set.
func (g *Guarantee) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*g = 0
		return nil
	}
	for _, x := range []Guarantee{ExactlyOnce, AtLeastOnce, AtMostOnce} {
		if x.String() == string(b) {
			*g = x
			return nil
		}
	}
	return fmt.Errorf("unknown guarantee %q: exactly-once, at-least-once or at-most-once", b)
}

// Satisfies says whether who needs want can live with g.
func (g Guarantee) Satisfies(want Guarantee) bool { return want == 0 || g == ExactlyOnce || g == want }
