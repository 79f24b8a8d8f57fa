package staunch

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/inspect"
	"github.com/staunchdev/staunch/storage"
	"github.com/staunchdev/staunch/storage/dir"
)

// checkpointsUsage is printed where the verb is given something wrong.
const checkpointsUsage = `usage: checkpoints [list | show [ID] | verify [ID] | gc] [flags]

  list            every checkpoint that is kept, those that failed, and which one a start would resume from
  show [ID]       what a checkpoint (the newest) holds and how it was taken
    -barriers     with when the barrier of each channel arrived
  verify [ID]     read every byte of the kept checkpoints, or of one, again; exit status 1 if something is wrong
  gc              delete what no checkpoint refers to and earlier starts have left
    -dry-run      only say what would be deleted
  -o json         print JSON

All but gc only read, and all may be used while the job runs.
`

// checkpointsFlags are the flags of the verb checkpoints.
type checkpointsFlags struct {
	output   string
	barriers bool
	dryRun   bool
}

// addFlags adds the flags of the verb checkpoints.
func (f *checkpointsFlags) addFlags(fs *flag.FlagSet) {
	fs.StringVar(&f.output, "o", "text", "`format` of the output: text or json")
	fs.BoolVar(&f.barriers, "barriers", false, "show: when the barrier of each channel arrived")
	fs.BoolVar(&f.dryRun, "dry-run", false, "gc: say what would be deleted, and delete nothing")
}

// checkpointsVerb looks at the storage that a run would use, offline: it takes
// nothing over and does not need the job to stand still. The graph is not
// looked at, so that one with faults keeps nobody from its checkpoints.
func checkpointsVerb(ctx context.Context, c *command) int {
	what, id, err := c.checkpointsArgs()
	if err != nil {
		fmt.Fprintln(c.stderr, err)
		fmt.Fprint(c.stderr, checkpointsUsage)
		return exitUsage
	}
	j := c.job()
	location := j.complete(c.options).Storage
	if location == "" {
		return c.failed(fmt.Errorf("job %q: no Storage for its checkpoints", j.name))
	}
	store, err := openToInspect(ctx, location, what == "gc" && !c.checkpoints.dryRun)
	if err != nil {
		return c.failed(fmt.Errorf("job %q: %w", j.name, err))
	}
	if closer, ok := store.(io.Closer); ok {
		defer closer.Close()
	}
	switch what {
	case "show":
		return c.show(ctx, store, id)
	case "verify":
		return c.verify(ctx, store, id)
	case "gc":
		return c.collect(ctx, store)
	}
	return c.list(ctx, store)
}

// checkpointsArgs reads what stands behind the verb.
func (c *command) checkpointsArgs() (what string, id checkpoint.ID, err error) {
	what, args := "list", c.args
	if len(args) > 0 {
		what, args = args[0], args[1:]
	}
	switch {
	case what != "list" && what != "show" && what != "verify" && what != "gc":
		return "", 0, fmt.Errorf("checkpoints: there is no %q", what)
	case c.checkpoints.output != "text" && c.checkpoints.output != "json":
		return "", 0, fmt.Errorf("checkpoints: -o %s: text or json", c.checkpoints.output)
	case c.checkpoints.barriers && what != "show":
		return "", 0, errors.New("checkpoints: -barriers is for show")
	case c.checkpoints.dryRun && what != "gc":
		return "", 0, errors.New("checkpoints: -dry-run is for gc")
	case len(args) == 0:
		return what, 0, nil
	case len(args) > 1 || what == "list" || what == "gc":
		return "", 0, fmt.Errorf("checkpoints %s: too many arguments: %q", what, args)
	}
	n, err := strconv.ParseUint(args[0], 10, 64)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("checkpoints %s: %q is not the id of a checkpoint", what, args[0])
	}
	return what, checkpoint.ID(n), nil
}

// openToInspect opens a storage so that opening it changes nothing, where the
// scheme can do that: a directory is neither made nor tidied.
func openToInspect(ctx context.Context, location string, toDelete bool) (storage.Store, error) {
	if storage.Scheme(location) != "file" {
		return storage.Open(ctx, location)
	}
	path, err := dirPath(location)
	if err != nil {
		return nil, err
	}
	reader, err := dir.OpenReader(path)
	if err != nil {
		return nil, err
	}
	if !toDelete {
		return reader, nil
	}
	// It is there; now it may be opened to be changed.
	if err := reader.Close(); err != nil {
		return nil, err
	}
	return storage.Open(ctx, location)
}

func (c *command) list(ctx context.Context, store storage.Store) int {
	l, err := inspect.List(ctx, store, time.Now())
	if err != nil {
		return c.failed(err)
	}
	return c.print(l, l.WriteText)
}

func (c *command) show(ctx context.Context, store storage.Store, id checkpoint.ID) int {
	d, err := inspect.Show(ctx, store, id, c.checkpoints.barriers)
	if err != nil {
		return c.failed(err)
	}
	return c.print(d, d.WriteText)
}

// verify prints each object as soon as it was read: a store may be large.
func (c *command) verify(ctx context.Context, store storage.Store, id checkpoint.ID) int {
	each := func(v inspect.Verified) { v.WriteText(c.stdout) }
	if c.checkpoints.output == "json" {
		each = nil
	}
	v, err := inspect.Verify(ctx, store, id, each)
	if err != nil {
		return c.failed(err)
	}
	status := c.print(v, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, v.Summary())
		return err
	})
	if v.Faults > 0 {
		return exitFailed
	}
	return status
}

func (c *command) collect(ctx context.Context, store storage.Store) int {
	g, err := inspect.Collect(ctx, store, c.checkpoints.dryRun)
	status := exitOK
	if g != nil {
		status = c.print(g, g.WriteText)
	}
	if err != nil {
		return c.failed(err)
	}
	return status
}

// print prints a result as it was asked for.
func (c *command) print(v any, text func(io.Writer) error) int {
	err := error(nil)
	if c.checkpoints.output == "json" {
		e := json.NewEncoder(c.stdout)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		err = e.Encode(v)
	} else {
		err = text(c.stdout)
	}
	if err != nil {
		return c.failed(fmt.Errorf("print: %w", err))
	}
	return exitOK
}
