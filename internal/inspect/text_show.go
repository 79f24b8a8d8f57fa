package inspect

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// WriteText writes all of a checkpoint. Channels are told if there are any, so
// only if Show was asked for barriers.
func (d *Detail) WriteText(w io.Writer) error {
	p := &page{w: w}
	p.printf("checkpoint %d of job %s in %s\n", d.ID, d.Job, d.Store)
	d.writeHead(p)
	rows := [][]string{{"PHASE", "TOOK", "OVER AFTER"}}
	for _, ph := range d.Phases {
		rows = append(rows, []string{ph.Name, ph.Took.String(), ph.After.String()})
	}
	p.section("coordinator", rows)
	d.writeStates(p)
	d.writeSources(p)
	d.writeSubtasks(p)
	d.writeBarriers(p)
	rows = [][]string{{"ID", "TRIGGERED (UTC)", "AFTER", "WHY"}}
	for _, f := range d.Failed {
		rows = append(rows, []string{fmt.Sprint(f.ID), f.Triggered.Format(timeLayout), f.Duration.String(), f.Failure.String()})
	}
	p.section("failed since the checkpoint before", rows)
	return p.err
}

func (d *Detail) writeHead(p *page) {
	p.printf("  %s, %s, %s, lineage %d, epoch %s", d.Status, d.Kind, d.Mode, d.Lineage, d.epoch())
	if d.Parent != 0 {
		p.printf(", parent %d", d.Parent)
	}
	p.printf("\n  triggered %s UTC", d.Triggered.Format(timeLayout))
	if d.Failure != nil {
		p.printf(", given up after %v\n  %v\n", d.Duration, d.Failure)
	} else {
		p.printf(", %v to the last ack\n", d.Duration)
		p.printf("  state: %s in %s; %s, %s\n", sizeText(d.StateBytes), entriesText(d.Entries), counted(len(d.Objects), "object"), sizeText(d.stored()))
		p.printf("  manifest: %s, %s\n", d.Manifest.Name, sizeText(d.Manifest.Size))
		p.printf("  output: %s; pinned as: %s\n", d.Output, orDash(strings.Join(d.Pins, ", ")))
	}
	if s := d.Slowest; s != nil {
		p.printf("  slowest: %s, %v", s.Phase, s.Took)
		if s.Subtask != "" {
			p.printf(" at %s", s.Subtask)
		}
		if s.Channel != "" {
			p.printf(", waiting for the barrier of %s", s.Channel)
		}
		p.printf("\n")
	}
}

// stored is the size of the objects, which other checkpoints may share.
func (d *Detail) stored() (n int64) {
	for _, o := range d.Objects {
		n += o.Size
	}
	return n
}

func (d *Detail) writeStates(p *page) {
	rows := [][]string{{"OPERATOR", "STATE", "KIND", "ENTRIES", "BYTES", "SUBTASK", "HASHES", "STORED"}}
	for _, op := range d.Operators {
		for _, s := range op.States {
			rows = append(rows, []string{op.Name, s.Name, s.Kind, fmt.Sprint(s.Entries), sizeText(s.Bytes), "", "", ""})
			for _, g := range s.Segments {
				rows = append(rows, []string{"", "", "", g.entries(), "", fmt.Sprint(g.Subtask), g.Range, sizeText(g.Stored)})
			}
		}
		for _, l := range op.Lists {
			rows = append(rows, []string{op.Name, l.Name, l.Mode + " list", fmt.Sprint(l.Entries), sizeText(l.Bytes), "", "", ""})
		}
	}
	p.section("state", rows)
}

// entries are those of the base; how many the deltas change is not known
// without reading them.
func (g Segment) entries() string {
	if g.Deltas == 0 {
		return fmt.Sprint(g.Entries)
	}
	return fmt.Sprintf("%d and %s", g.Entries, counted(g.Deltas, "delta"))
}

func (d *Detail) writeSources(p *page) {
	records := [][]string{{"OPERATOR", "KIND", "PARALLELISM", "RECORDS", "FINISHED SUBTASKS", "ENUMERATOR"}}
	splits := [][]string{{"SOURCE", "SPLIT", "POSITION", "END", "WEIGHT", "DONE"}}
	committables := [][]string{{"SINK", "COMMITTABLE", "PREPARED FOR", "SUBTASK", "BYTES"}}
	for _, op := range d.Operators {
		enumerator := "-"
		if op.EnumeratorBytes > 0 {
			enumerator = sizeText(op.EnumeratorBytes)
		}
		records = append(records, []string{op.Name, op.Kind, fmt.Sprint(op.Parallelism), orDash(nonZero(op.Records)), orDash(join(op.Finished)), enumerator})
		for _, s := range op.Splits {
			end, done := "-", "no"
			if s.End != nil {
				end = fmt.Sprint(*s.End)
			}
			if s.Done {
				done = "yes"
			}
			splits = append(splits, []string{op.Name, s.ID, fmt.Sprint(s.Position), end, orDash(nonZero(s.Weight)), done})
		}
		for _, c := range op.Committables {
			committables = append(committables, []string{op.Name, c.ID, fmt.Sprint(c.Prepared), fmt.Sprint(c.Subtask), sizeText(int64(c.Bytes))})
		}
	}
	p.section("operators", records)
	p.section("splits", splits)
	p.section("committables", committables)
}

func (d *Detail) writeSubtasks(p *page) {
	rows := [][]string{{"SUBTASK", "START", "ALIGNMENT", "PREPARE", "SYNC", "ASYNC", "ACKED AFTER", "BYTES"}}
	for _, t := range d.Subtasks {
		rows = append(rows, []string{t.Name, t.Start.String(), t.Alignment.String(), t.Prepare.String(), t.Sync.String(), t.Async.String(), t.Acked.String(), sizeText(t.Bytes)})
	}
	p.section("subtasks", rows)
}

// writeBarriers prints when each barrier arrived, and names the last of each
// subtask.
func (d *Detail) writeBarriers(p *page) {
	rows := [][]string{{"SUBTASK", "CHANNEL FROM", "MS AFTER FIRST", "RECORDS AHEAD", ""}}
	for _, t := range d.Subtasks {
		for _, c := range t.Channels {
			after, note := strconv.FormatFloat(float64(c.After)/1e6, 'f', 3, 64), ""
			switch {
			case c.Ended:
				after, note = "-", "had ended"
			case c.Last && len(t.Channels) > 1:
				note = "the last"
			}
			rows = append(rows, []string{t.Name, c.From, after, fmt.Sprint(c.Queued), note})
		}
	}
	p.section("barriers", rows)
}

func nonZero(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func entriesText(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}
