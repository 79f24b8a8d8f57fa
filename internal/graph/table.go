package graph

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// Table shows a mapping, a line for each operator and state: what it takes over
// and what starts empty.
func (m *Mapping) Table(from *checkpoint.Manifest) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OPERATOR\tSTATE\tFROM\tENTRIES")
	for _, op := range m.Operators {
		if op.Old < 0 {
			fmt.Fprintf(w, "%s\t\tstarts empty\t\n", op.Name)
			continue
		}
		old := &from.Operators[op.Old]
		what := ""
		if old.Splits != nil {
			what = fmt.Sprintf("%d splits", old.Splits.Entries)
		}
		if pending(old) {
			what = fmt.Sprintf("%d committables", old.Committables.Entries)
		}
		if len(op.States) == 0 || what != "" {
			fmt.Fprintf(w, "%s\t\t%s\t%s\n", op.Name, old.Name, what)
		}
		for _, s := range op.States {
			if s.Old < 0 {
				fmt.Fprintf(w, "%s\t%s\tstarts empty\t\n", op.Name, s.Name)
				continue
			}
			state := &old.States[s.Old]
			fmt.Fprintf(w, "%s\t%s\t%s/%s\t%d\n", op.Name, s.Name, old.Name, state.Name, state.Entries)
		}
	}
	for _, d := range m.Dropped {
		operator, state, _ := strings.Cut(d, "/")
		fmt.Fprintf(w, "%s\t%s\tdropped\t\n", operator, state)
	}
	w.Flush()
	return b.String()
}
