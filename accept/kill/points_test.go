package kill

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// pointsEnv names the point at which a process of the overlaid binary kills
// itself: NAME:NTH, or NAME/KIND:NTH for one kind of object.
const pointsEnv = "STAUNCH_KILL_POINT"

// edit puts kill points into a source file: old, which must be there exactly
// once, is replaced. So a change of the code that moves a point fails the build
// of the test and does not silently take the point away.
type edit struct{ file, old, new string }

// before and after put a point before and after old.
func before(file, old, point string) edit {
	return edit{file, old, "\tkillPoint(" + point + ")\n" + old}
}

func after(file, old, point string) edit {
	return edit{file, old, old + "\tkillPoint(" + point + ")\n"}
}

var edits = []edit{
	// The store: an object is created under a temporary name, written, synced,
	// linked, and its directory synced.
	after("storage/dir/create.go", "\tif w.f, err = s.fs.Create(w.temp); err != nil {\n\t\treturn nil, s.notWritten(doing, name, err)\n\t}\n", `"dir.created", name`),
	{"storage/dir/create.go", "\tn, err := w.f.Write(p)\n",
		"\tif killDue(\"dir.torn\", w.name) {\n\t\tw.f.Write(p[:len(p)/2])\n\t\tdie()\n\t}\n\tn, err := w.f.Write(p)\n"},
	before("storage/dir/create.go", "\tif err := w.f.Sync(); err != nil {\n", `"dir.written", w.name`),
	before("storage/dir/create.go", "\tif err := w.f.Close(); err != nil {\n", `"dir.synced", w.name`),
	before("storage/dir/create.go", "\tif err := s.fs.SyncDir(dir); err != nil {\n", `"dir.linked", w.name`),
	{"storage/dir/create.go", "\ts.names[w.name] = true\n\treturn nil\n",
		"\ts.names[w.name] = true\n\treturn killPoint(\"dir.durable\", w.name)\n"},
	{"storage/dir/create.go", "\tdefer s.fs.Remove(w.temp)\n",
		"\tdefer func() { s.fs.Remove(w.temp); killPoint(\"dir.temp-removed\", w.name) }()\n"},
	before("storage/dir/durable.go", "\tif err := s.syncDir(up); err != nil {\n", `"dir.directory-made", dir`),
	before("storage/dir/read.go", "\t\terr = s.fs.Remove(name)\n", `"dir.delete", name`),
	after("storage/dir/read.go", "\tif err = s.absent(err); err != nil && !errors.Is(err, storage.ErrNotFound) {\n\t\treturn s.fault(\"delete\", name, err)\n\t}\n", `"dir.deleted", name`),

	// The file sink's writer: a segment is written, synced, staged by a rename.
	after("connector/file/writer.go", "\t\tw.f, w.name, w.size, w.crc = f, name, 0, 0\n", `"file.opened", ""`),
	{"connector/file/writer.go", "\tif _, err := w.f.Write(w.buf); err != nil {\n",
		"\tif killDue(\"file.torn\", \"\") {\n\t\tw.f.Write(w.buf[:len(w.buf)/2])\n\t\tdie()\n\t}\n\tif _, err := w.f.Write(w.buf); err != nil {\n"},
	before("connector/file/writer.go", "\tif err := w.f.Sync(); err != nil {\n", `"file.written", ""`),
	before("connector/file/writer.go", "\terr := w.f.Close()\n\tw.f = nil\n\tif err != nil {\n", `"file.synced", ""`),
	before("connector/file/writer.go", "\tif err := w.disk.SyncDir(w.dir); err != nil {\n", `"file.staged", ""`),
	before("connector/file/writer.go", "\tdata, err := cbor.Marshal(staged{", `"file.prepared", ""`),

	// Its committer: segments are linked into place, the directory is synced, and
	// their staged names are removed.
	before("connector/file/sink.go", "\tfor _, c := range cs {\n\t\tif err := s.publish(c); err != nil {\n", `"file.commit", ""`),
	{"connector/file/sink.go", "\t\tif err := s.publish(c); err != nil {\n\t\t\treturn fmt.Errorf(\"commit segment %s: %w\", c.ID, err)\n\t\t}\n",
		"\t\tif err := s.publish(c); err != nil {\n\t\t\treturn fmt.Errorf(\"commit segment %s: %w\", c.ID, err)\n\t\t}\n\t\tkillPoint(\"file.published\", \"\")\n"},
	before("connector/file/sink.go", "\tif err := s.fs().SyncDir(s.Dir); err != nil {\n", `"file.all-published", ""`),
	after("connector/file/sink.go", "\t\treturn fmt.Errorf(\"commit %d segments to %s: %w\", len(cs), s.Dir, err)\n\t}\n", `"file.directory-synced", ""`),
	{"connector/file/sink.go", "\t\tif err := s.fs().Remove(filepath.Join(s.staging(), c.ID)); err != nil",
		"\t\tkillPoint(\"file.unstage\", \"\")\n\t\tif err := s.fs().Remove(filepath.Join(s.staging(), c.ID)); err != nil"},
	{"connector/file/sink.go", "\t\t\treturn fmt.Errorf(\"commit segment %s: %w\", c.ID, err)\n\t\t}\n\t}\n\treturn nil\n",
		"\t\t\treturn fmt.Errorf(\"commit segment %s: %w\", c.ID, err)\n\t\t}\n\t}\n\treturn killPoint(\"file.committed\", \"\")\n"},
	before("connector/file/sink.go", "\tnames, err := s.fs().List(s.staging())\n", `"file.recovered", ""`),
	after("connector/file/sink.go", "\t\t\treturn fmt.Errorf(\"remove staged segment: %w\", err)\n\t\t}\n", `"file.stale-removed", ""`),

	// The upsert: a fence is raised at the start, rows are written in one
	// transaction a checkpoint.
	before("connector/sqlsink/upsert.go", "\tif err := db.raise(ctx, i); err != nil {\n", `"sql.tables-made", ""`),
	after("connector/sqlsink/upsert.go", "\t\treturn fmt.Errorf(\"raise fence: %w\", err)\n\t}\n", `"sql.fenced", ""`),
	before("connector/sqlsink/upsert.go", "\terr := w.db.transact(ctx, func(tx *sql.Tx) error {\n", `"sql.flush", ""`),
	{"connector/sqlsink/upsert.go", "\t\treturn w.db.inRuns(ctx, tx, w.t, len(keys), w.db.upsert, func(i int) []any { return w.rows[keys[i]] })\n",
		"\t\terr := w.db.inRuns(ctx, tx, w.t, len(keys), w.db.upsert, func(i int) []any { return w.rows[keys[i]] })\n\t\tkillPoint(\"sql.rows-written\", \"\")\n\t\treturn err\n"},
	before("connector/sqlsink/upsert.go", "\tclear(w.rows)\n", `"sql.rows-committed", ""`),
}

// point is a place to kill at.
type point struct {
	name string
	// later is how often the second kill lets the point pass at most: for those
	// that every record of the log passes, so that it is not always the first.
	later int
	// scene is a point whose kill makes this one come up at the next start.
	scene string
}

var points = []point{
	{name: "dir.created/log", later: 12}, {name: "dir.created/ckpt", later: 3}, {name: "dir.created/obj", later: 3},
	{name: "dir.torn/log", later: 12}, {name: "dir.torn/ckpt", later: 3}, {name: "dir.torn/obj", later: 3},
	{name: "dir.written/log", later: 12}, {name: "dir.written/obj", later: 3},
	{name: "dir.synced/log", later: 12}, {name: "dir.synced/ckpt", later: 3},
	{name: "dir.linked/log", later: 12}, {name: "dir.linked/ckpt", later: 3}, {name: "dir.linked/obj", later: 3},
	{name: "dir.durable/log", later: 12}, {name: "dir.durable/ckpt", later: 3},
	{name: "dir.temp-removed/log", later: 12},
	{name: "dir.directory-made", later: 3},
	{name: "dir.delete/ckpt", later: 3}, {name: "dir.deleted/ckpt", later: 3}, {name: "dir.deleted/obj", later: 3},
	{name: "file.opened", later: 5}, {name: "file.torn", later: 5},
	{name: "file.written", later: 5}, {name: "file.synced", later: 5},
	{name: "file.staged", later: 5}, {name: "file.prepared", later: 5},
	// With two subtasks the first and third link have another one behind them.
	{name: "file.commit", later: 4}, {name: "file.published", later: 5},
	{name: "file.all-published", later: 4}, {name: "file.directory-synced", later: 4}, {name: "file.unstage", later: 5}, {name: "file.committed", later: 4},
	{name: "file.recovered"},
	{name: "file.stale-removed", scene: "file.synced"},
	{name: "sql.tables-made"}, {name: "sql.fenced"},
	{name: "sql.flush", later: 5}, {name: "sql.rows-written", later: 5}, {name: "sql.rows-committed", later: 5},
}

// killSource is what the edits call. Each package gets its own copy.
const killSource = `package %s

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
)

var killCount atomic.Int64

func killDue(name, object string) bool {
	at, nth, _ := strings.Cut(os.Getenv("STAUNCH_KILL_POINT"), ":")
	at, kind, _ := strings.Cut(at, "/")
	top, _, _ := strings.Cut(object, "/")
	if name != at || kind != "" && kind != top {
		return false
	}
	return fmt.Sprint(killCount.Add(1)) == nth
}

func killPoint(name, object string) error {
	if killDue(name, object) {
		die()
	}
	return nil
}

func die() {
	fmt.Fprintln(os.Stderr, "killed at", os.Getenv("STAUNCH_KILL_POINT"))
	syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}
`

// withPoints is the main job with the kill points in it, built once.
var withPoints struct {
	sync.Mutex
	bin string
}

// buildWithPoints builds the main job with the kill points in it. Without the
// environment variable it is the same program.
func buildWithPoints(t *testing.T) string {
	t.Helper()
	withPoints.Lock()
	defer withPoints.Unlock()
	if withPoints.bin == "" {
		withPoints.bin = build(t, "./examples/orders", "-overlay", writeOverlay(t))
	}
	return withPoints.bin
}

// writeOverlay writes the edited sources and returns the file that go build
// takes them from.
func writeOverlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	// The text is replaced at places found in the original, so that no edit is
	// found in what another has put in.
	original, edited := map[string]string{}, map[string]string{}
	for _, e := range edits {
		if _, ok := original[e.file]; !ok {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
			if err != nil {
				t.Fatal(err)
			}
			original[e.file], edited[e.file] = string(b), string(b)
		}
		if n := strings.Count(original[e.file], e.old); n != 1 {
			t.Fatalf("%s has %d times, and not once, the place of a kill point:\n%s", e.file, n, e.old)
		}
		if !strings.Contains(edited[e.file], e.old) {
			t.Fatalf("%s: an edit before has changed the place of another:\n%s", e.file, e.old)
		}
		edited[e.file] = strings.Replace(edited[e.file], e.old, e.new, 1)
	}
	replace := map[string]string{}
	put := func(name, content string) {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = path
	}
	for name, content := range edited {
		put(name, content)
		pkg := filepath.Dir(name)
		put(pkg+"/killpoint.go", fmt.Sprintf(killSource, filepath.Base(pkg)))
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
