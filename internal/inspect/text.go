package inspect

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// page collects text and the first error of writing it.
type page struct {
	w   io.Writer
	err error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// table prints rows of equal length in columns, the first row is the heading.
// Nothing is printed of a table without rows.
func (p *page) table(indent string, rows [][]string) {
	if len(rows) < 2 {
		return
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "%s%s\n", indent, strings.Join(r, "\t"))
	}
	w.Flush()
	for line := range strings.Lines(b.String()) {
		p.printf("%s\n", strings.TrimRight(line, " \n"))
	}
}

// section is a table with a title above it.
func (p *page) section(title string, rows [][]string) {
	if len(rows) > 1 {
		p.printf("\n%s\n", title)
		p.table("  ", rows)
	}
}
