package operator

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// What is shown of a record in a message, in bytes.
const describeBytes = 200

// Describe prints a record for a message, cut to a bounded length. A record
// whose own String or Error method panics is described by fmt as such.
func Describe(v any) string {
	s := fmt.Sprintf("%+v", v)
	if len(s) <= describeBytes {
		return s
	}
	n := describeBytes
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD") + "..."
}
