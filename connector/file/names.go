package file

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/staunchdev/staunch/connector"
)

const (
	// stagingDir is hidden, so that neither a glob over the output nor a Source
	// that reads it sees what is not committed.
	stagingDir = ".staging"
	// openSuffix marks a segment that is still written.
	openSuffix = ".open"
)

// prefix is what all names of an operator begin with. The parts are escaped, so
// that no prefix of one operator is that of another: job "a", operator "b.c" and
// job "a.b", operator "c" differ.
func prefix(i connector.Instance) string {
	return escape(i.Job) + "." + escape(i.Operator) + "."
}

// segmentName names a committed segment. No other attempt ever makes the same
// name; and names sort by lineage and checkpoint, so in the order of epochs.
func segmentName(i connector.Instance, id connector.CheckpointID, ext string) string {
	return fmt.Sprintf("%s%06d-%010d-%06d-%05d-%04d%s", prefix(i), i.Lineage, id, i.Generation, i.Attempt, i.Subtask, ext)
}

// openName names a segment whose checkpoint is not known yet, by its number
// among those of its writer.
func openName(i connector.Instance, n int) string {
	return fmt.Sprintf("%s%06d-%010d-%06d-%05d-%04d%s", prefix(i), i.Lineage, n, i.Generation, i.Attempt, i.Subtask, openSuffix)
}

// attemptOf reads generation and attempt out of a name of i's operator; ok is
// false for a name of another operator or of something else altogether.
func attemptOf(i connector.Instance, name string) (generation, attempt uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix(i))
	if !ok {
		return 0, 0, false
	}
	if dot := strings.IndexByte(rest, '.'); dot >= 0 {
		rest = rest[:dot]
	}
	parts := strings.Split(rest, "-")
	if len(parts) != 5 {
		return 0, 0, false
	}
	var n [5]uint64
	for j, p := range parts {
		v, err := strconv.ParseUint(p, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		n[j] = v
	}
	return n[2], n[3], true
}

// escape keeps letters, digits, - and _, and writes other bytes as %XX.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
