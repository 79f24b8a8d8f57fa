package kill

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/inspect"
	"github.com/staunchdev/staunch/storage/dir"
)

// reservedOnly returns the orders that the next start will skip: of each file
// those from the position in the newest checkpoint to the end of what is
// reserved. It is called while no process runs.
func reservedOnly(t *testing.T, in *input, data string) []string {
	t.Helper()
	path := filepath.Join(data, "checkpoints")
	if _, err := os.Stat(filepath.Join(path, "log")); os.IsNotExist(err) {
		return nil // killed before it had begun
	}
	store, err := dir.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	view, err := ckptlog.Read(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	positions := map[string]int64{}
	if latest, ok := view.Latest(); ok {
		d, err := inspect.Show(t.Context(), store, latest.ID, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range d.Operators {
			for _, s := range op.Splits {
				positions[s.ID] = s.Position
			}
		}
	}
	var ids []string
	for _, r := range view.Reservations {
		content, err := os.ReadFile(filepath.Join(in.dir, r.Split))
		if err != nil {
			t.Fatal(err)
		}
		if r.N <= positions[r.Split] {
			continue
		}
		first := bytes.Count(content[:positions[r.Split]], []byte("\n"))
		end := bytes.Count(content[:r.N], []byte("\n"))
		ids = append(ids, in.files[r.Split][first:end]...)
	}
	return ids
}
