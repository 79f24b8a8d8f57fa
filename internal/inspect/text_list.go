package inspect

import (
	"fmt"
	"io"
	"strings"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// WriteText writes a listing as a table, with the newest last, and what a start
// would go on from.
func (l *Listing) WriteText(w io.Writer) error {
	p := &page{w: w}
	p.printf("job %s in %s\n", l.Job, l.Store)
	if l.Generation > 0 {
		p.printf("generation %d, owner %s\n", l.Generation, orDash(l.Owner))
	}
	rows := [][]string{{"ID", "STATUS", "KIND", "LINEAGE", "EPOCH", "TRIGGERED (UTC)", "DURATION", "STATE", "OUTPUT", "PINNED AS", "NOTE"}}
	for _, c := range l.Checkpoints {
		rows = append(rows, c.row())
	}
	if len(rows) > 1 {
		p.printf("\n")
	}
	p.table("", rows)
	p.printf("\n%s\n", l.resumeText())
	return p.err
}

func (c Listed) row() []string {
	triggered, duration, state := "-", "-", "-"
	if !c.Triggered.IsZero() {
		triggered, duration = c.Triggered.Format(timeLayout), c.Duration.String()
	}
	if c.Status == Completed {
		state = sizeText(c.StateBytes)
	}
	note := ""
	switch {
	case c.Failure != nil:
		note = c.Failure.String()
	case c.Fault != nil:
		note = c.Fault.String()
	}
	return []string{fmt.Sprint(c.ID), string(c.Status), c.Kind, fmt.Sprint(c.Lineage), c.epoch(), triggered, duration,
		state, orDash(string(c.Output)), orDash(strings.Join(c.Pins, ", ")), note}
}

// epoch is generation and attempt.
func (c Listed) epoch() string {
	if c.Attempt == 0 {
		return fmt.Sprint(c.Generation)
	}
	return checkpoint.Epoch{Generation: c.Generation, Attempt: c.Attempt}.String()
}

func (f *Failure) String() string {
	s := f.Reason
	if f.Subtask != "" {
		s += " by " + f.Subtask
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	s += ", in phase " + f.Phase
	if len(f.Waiting) > 0 {
		s += ", waiting for " + join(f.Waiting)
	}
	return s
}

func (l *Listing) resumeText() string {
	if l.Resume == nil {
		return "a start would begin empty"
	}
	for _, c := range l.Checkpoints {
		if c.ID != l.Resume.ID || c.Status == Failed {
			continue
		}
		if c.Status == Unreadable {
			return fmt.Sprintf("a start would resume from checkpoint %d, and fail: %v", c.ID, c.Fault)
		}
		return fmt.Sprintf("a start would resume from checkpoint %d, triggered %v ago", c.ID, l.Resume.Age)
	}
	return fmt.Sprintf("a start would resume from checkpoint %d", l.Resume.ID)
}
