package sqlsink

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// dialect is how the databases differ in what the sinks need of them.
type dialect struct {
	name      string
	quote     string // around identifiers; doubled within
	numbered  bool   // $1 and not ?
	maxParams int    // of one statement
	keyType   string // text that can be part of a primary key
	shared    string // suffix of a SELECT that keeps the row from changing until the end of the transaction
	single    bool   // one connection a process
}

func dialectOf(driver string) (dialect, error) {
	switch driver {
	case "sqlite":
		// A transaction begins with the write lock (see open), so a row that was
		// read cannot change before its end.
		return dialect{name: driver, quote: `"`, maxParams: 32766, keyType: "TEXT", single: true}, nil
	case "pgx", "postgres":
		return dialect{name: driver, quote: `"`, numbered: true, maxParams: 65535, keyType: "TEXT", shared: " FOR SHARE"}, nil
	case "mysql":
		return dialect{name: driver, quote: "`", maxParams: 65535, keyType: "VARCHAR(190)", shared: " LOCK IN SHARE MODE"}, nil
	}
	return dialect{}, fmt.Errorf("sqlsink: driver %q is none of sqlite, pgx, postgres, mysql", driver)
}

// ident quotes a name.
func (d dialect) ident(s string) string {
	return d.quote + strings.ReplaceAll(s, d.quote, d.quote+d.quote) + d.quote
}

// table quotes a name that may have a schema.
func (d dialect) table(s string) string {
	parts := strings.Split(s, ".")
	for i, p := range parts {
		parts[i] = d.ident(p)
	}
	return strings.Join(parts, ".")
}

func (d dialect) idents(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = d.ident(n)
	}
	return strings.Join(quoted, ", ")
}

// bind writes the parameters of a statement, given as ?, as the driver wants them.
func (d dialect) bind(statement string) string {
	if !d.numbered {
		return statement
	}
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

// rows is how many rows of n columns go into one statement.
func (d dialect) rows(n int) int { return max(1, min(250, d.maxParams/n)) }

// insert is an INSERT of n rows.
func (d dialect) insert(t Table, n int) string {
	return "INSERT INTO " + d.table(t.Name) + " (" + d.idents(t.Columns) + ") VALUES " + d.tuples(len(t.Columns), n)
}

// upsert is an INSERT of n rows, no two of the same key, that overwrites.
func (d dialect) upsert(t Table, n int) string {
	var set []string
	for _, c := range t.Columns {
		if slices.Contains(t.Key, c) {
			continue
		}
		if d.name == "mysql" {
			set = append(set, d.ident(c)+" = VALUES("+d.ident(c)+")")
		} else {
			set = append(set, d.ident(c)+" = excluded."+d.ident(c))
		}
	}
	s := d.insert(t, n)
	switch {
	case d.name == "mysql" && len(set) == 0:
		return s + " ON DUPLICATE KEY UPDATE " + d.ident(t.Key[0]) + " = " + d.ident(t.Key[0])
	case d.name == "mysql":
		return s + " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
	case len(set) == 0:
		return s + " ON CONFLICT (" + d.idents(t.Key) + ") DO NOTHING"
	}
	return s + " ON CONFLICT (" + d.idents(t.Key) + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// tuples writes n tuples of parameters.
func (d dialect) tuples(columns, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('(')
		for j := range columns {
			if j > 0 {
				b.WriteString(", ")
			}
			if d.numbered {
				b.WriteString("$" + strconv.Itoa(i*columns+j+1))
			} else {
				b.WriteByte('?')
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}
