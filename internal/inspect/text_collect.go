package inspect

import "io"

// WriteText writes what was deleted, or would be, and why.
func (c *Collection) WriteText(w io.Writer) error {
	p := &page{w: w}
	verb := "deleted"
	if c.DryRun {
		verb = "would delete"
	}
	for _, d := range c.Deleted {
		p.printf("%s %s, %s: %s\n", verb, d.Object, sizeText(d.Size), d.Why)
	}
	p.printf("%s %s, %s\n", verb, counted(len(c.Deleted), "object"), sizeText(c.Bytes))
	if c.Left > 0 {
		p.printf("left %s, %s, of generation %d: the job, or its next start, collects them\n", counted(c.Left, "object"), sizeText(c.LeftBytes), c.Generation)
	}
	return p.err
}
