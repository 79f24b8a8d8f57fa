package inspect

import (
	"fmt"
	"io"
)

// WriteText writes one object: OK, or a line for everything that is wrong.
func (v Verified) WriteText(w io.Writer) error {
	p := &page{w: w}
	switch {
	case v.Disposed:
		p.printf("gone     %s: the job disposed of its checkpoint meanwhile\n", v.Object)
	case len(v.Faults) == 0:
		p.printf("OK       %s: %s, %s, %s\n", v.Object, sizeText(v.Size), counted(v.Runs, "run"), counted(v.Blocks, "block"))
	default:
		for _, f := range v.Faults {
			p.printf("%-8s %s", verdict(f.Kind), v.Object)
			if len(v.Checkpoints) > 0 {
				p.printf(" (checkpoint %s)", join(v.Checkpoints))
			}
			p.printf(": %v", f)
			if f.Run != "" {
				p.printf(" [%s]", f.Run)
			}
			p.printf("\n")
		}
	}
	return p.err
}

// verdict is the word a line begins with.
func verdict(k FaultKind) string {
	switch k {
	case Damaged:
		return "DAMAGED"
	case Missing:
		return "MISSING"
	case Unsupported:
		return "NEWER"
	}
	return "UNKNOWN"
}

// Summary is the last line of a verification.
func (v *Verification) Summary() string {
	read := fmt.Sprintf("%s, %s, %s, %s, %s", counted(len(v.Checkpoints), "checkpoint"), counted(len(v.Objects), "object"),
		counted(v.Runs, "run"), counted(v.Blocks, "block"), sizeText(v.Bytes))
	if v.Faults == 0 {
		return "verified: " + read + ": no fault"
	}
	return fmt.Sprintf("verified: %s: %s", read, counted(v.Faults, "fault"))
}
