package lint

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/staunchdev/staunch"

// policy says what a package may import. A line is a package (relative to the
// module; "." is the root), a colon, and what it must not import: packages of
// the module as paths below it, others in full. "..." stands for everything
// below a path.
const policy = `
# Pure state machines: an event goes in, actions come out.
internal/checkpoint: context net os sync time/tzdata math/rand math/rand/v2 . internal/ckptlog internal/cluster internal/operator internal/task storage...
internal/graph:      context net os sync . internal/cluster internal/operator internal/task storage...
internal/keyhash:    context net os sync . internal/cluster internal/operator internal/task storage...

# The core never imports the public API, which stands on it.
internal/ckptlog:    . internal/cluster internal/task internal/operator
internal/statefile:  . internal/cluster internal/task internal/operator internal/statestore
internal/statestore: . internal/cluster internal/task internal/operator
internal/element:    . internal/cluster internal/task internal/operator
internal/transport:  . internal/cluster internal/task internal/operator
internal/operator:   . internal/cluster internal/task
internal/task:       . internal/cluster
internal/cluster:    .
internal/sim:        .
internal/inspect:    . internal/cluster internal/task
storage:             . internal/cluster internal/task internal/operator
storage/dir:         . internal/cluster internal/task internal/operator
storage/memstore:    . internal/cluster internal/task internal/operator
codec:               . internal/cluster internal/task internal/operator storage...
state:               . internal/cluster internal/task internal/operator
connector:           . internal/... storage...
connector/file:      . internal/cluster internal/task internal/operator
connector/gen:       . internal/cluster internal/task internal/operator
connector/stdio:     . internal/cluster internal/task internal/operator
connector/sqlsink:   . internal/cluster internal/task internal/operator
`

// heavy are dependencies that only who uses them compiles: no package of the
// module but the named ones imports them outside of tests.
var heavy = map[string][]string{
	"modernc.org/sqlite":       {"examples/orders"},
	"github.com/twmb/franz-go": nil,
	"github.com/cockroachdb":   nil,
	"github.com/prometheus":    nil,
	"github.com/jackc/pgx":     nil,
	"github.com/go-sql-driver": nil,
	"database/sql":             {"connector/sqlsink", "examples/orders", "accept/kill", "accept/powerloss"},
}

type file struct {
	dir, name string
	test      bool
	imports   []string
	lines     int
}

func files(t *testing.T) []file {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "orders-data") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		x := file{dir: filepath.ToSlash(filepath.Dir(rel)), name: rel, test: strings.HasSuffix(path, "_test.go"), lines: strings.Count(string(src), "\n")}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			x.imports = append(x.imports, p)
		}
		out = append(out, x)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestImportsPointDown(t *testing.T) {
	forbidden := map[string][]string{}
	for _, line := range strings.Split(policy, "\n") {
		line, _, _ = strings.Cut(line, "#")
		dir, list, ok := strings.Cut(line, ":")
		if ok {
			forbidden[strings.TrimSpace(dir)] = strings.Fields(list)
		}
	}
	for _, f := range files(t) {
		if f.test {
			continue
		}
		for _, imp := range f.imports {
			for _, no := range forbidden[f.dir] {
				if matches(imp, no) {
					t.Errorf("%s imports %s, which the policy of %s forbids", f.name, imp, f.dir)
				}
			}
			for dep, users := range heavy {
				if (imp == dep || strings.HasPrefix(imp, dep+"/")) && !slices.Contains(users, f.dir) {
					t.Errorf("%s imports %s; only %v may", f.name, imp, users)
				}
			}
		}
	}
}

func matches(imp, no string) bool {
	if no == "." {
		return imp == module
	}
	tree := strings.HasSuffix(no, "...")
	no = strings.TrimSuffix(strings.TrimSuffix(no, "..."), "/")
	for _, p := range []string{no, module + "/" + no} {
		if imp == p || tree && strings.HasPrefix(imp, p+"/") {
			return true
		}
	}
	return false
}

// A package name is part of every name in it, so it must say something.
func TestPackageNamesSaySomething(t *testing.T) {
	for _, f := range files(t) {
		switch filepath.Base(f.dir) {
		case "util", "utils", "common", "manager", "helper", "helpers", "misc":
			t.Errorf("%s: a package of that name says nothing", f.name)
		}
	}
}
