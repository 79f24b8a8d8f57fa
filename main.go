package staunch

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/internal/ckptlog"
	"github.com/staunchdev/staunch/internal/graph"
)

// The exit statuses of Main and Command.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
	exitFenced = 3
)

// Main is the main function of a job's binary. It parses the command line (the
// program's own flags in package flag, and those of the engine that the program
// did not define), calls build, and carries out the verb. Options come from the
// command line, then Job.Defaults, then the engine. Flags may stand before and
// after the verb:
//
//	run (default)   run the job until its sources end or it is interrupted
//	plan            print the graph and what it guarantees, and run nothing
//	checkpoints     look into the storage, also while the job runs:
//	    list                   what is kept, and what a start would resume from (default)
//	    show [-barriers] [ID]  what a checkpoint holds and how it was taken
//	    verify [ID]            read every byte again; 1 if something is wrong
//	    gc [-dry-run]          delete what earlier starts have left
//	    -o json                print JSON
//
// build must do no I/O: every verb calls it. SIGINT and SIGTERM stop the job, a
// second one ends the process at once. Main exits the process: 0 if all went
// well, 1 after a failure, 2 for a wrong command line, 3 if another owner has
// taken the job over, which a supervisor must not answer with a restart.
func Main(build func() *Job) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from then on a signal does what it does by default
	os.Exit(Command(ctx, os.Args[1:], os.Stdout, os.Stderr, build))
}

// Command is Main for tests and for programs with verbs of their own: it
// returns the exit status.
func Command(ctx context.Context, args []string, stdout, stderr io.Writer, build func() *Job) int {
	c := &command{stdout: stdout, stderr: stderr, build: build}
	if err := c.parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	return verbs[c.verb].run(ctx, c)
}

// verb is something that a job's binary can do.
type verb struct {
	about string
	// flags adds the verb's own flags.
	flags func(c *command, fs *flag.FlagSet)
	run   func(ctx context.Context, c *command) int
}

// verbs is where verbs are dispatched. It is filled by init, since usage, which
// verbs call, lists it.
var verbs map[string]verb

func init() {
	verbs = map[string]verb{
		"run":  {about: "run the job until its sources end or it is interrupted", run: runVerb},
		"plan": {about: "print the graph and what it guarantees, and run nothing", run: planVerb},
		"checkpoints": {
			about: "list, show [-barriers] [ID], verify [ID] or gc [-dry-run] the checkpoints that are kept; -o json",
			flags: func(c *command, fs *flag.FlagSet) { c.checkpoints.addFlags(fs) }, run: checkpointsVerb,
		},
	}
}

// command is one call of Command.
type command struct {
	stdout, stderr io.Writer
	build          func() *Job
	verb           string
	args           []string // behind the verb, without flags
	options        Options
	rate           int64
	checkpoints    checkpointsFlags
	owners         map[string]string // the verb that a flag belongs to, if it is not for all
}

// job builds the job.
func (c *command) job() *Job {
	j := c.build()
	j.rate = c.rate
	return j
}

// parse reads the command line. The first word that is no flag is the verb;
// what is not known is reported with the usage.
func (c *command) parse(args []string) error {
	c.verb = "run"
	fs := c.flagSet()
	named := false
	for {
		if err := fs.Parse(args); err != nil {
			return err
		}
		args = fs.Args()
		switch {
		case len(args) == 0:
			if c.verb == "run" && len(c.args) > 0 || c.verb == "plan" && len(c.args) > 0 {
				return c.wrong(fs, "%s takes no arguments, but was given %q", c.verb, c.args)
			}
			if name, owner := c.misplaced(fs); owner != "" {
				return c.wrong(fs, "%s: -%s belongs to %s", c.verb, name, owner)
			}
			if c.rate < 0 {
				return c.wrong(fs, "rate is %d: records a second, or 0 for no limit", c.rate)
			}
			return nil
		case named:
			c.args = append(c.args, args[0])
		default:
			if _, ok := verbs[args[0]]; !ok {
				return c.wrong(fs, "unknown verb %q", args[0])
			}
			named, c.verb = true, args[0]
		}
		args = args[1:]
	}
}

func (c *command) wrong(fs *flag.FlagSet, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	fmt.Fprintln(c.stderr, err)
	fs.Usage()
	return err
}

// misplaced finds a flag that was given, but belongs to another verb.
func (c *command) misplaced(fs *flag.FlagSet) (name, owner string) {
	fs.Visit(func(f *flag.Flag) {
		if o := c.owners[f.Name]; o != "" && o != c.verb {
			name, owner = f.Name, o
		}
	})
	return name, owner
}

// flagSet has the program's flags and those of the engine and of the verbs that
// it did not define itself.
func (c *command) flagSet() *flag.FlagSet {
	fs := flag.NewFlagSet(filepath.Base(os.Args[0]), flag.ContinueOnError)
	fs.SetOutput(c.stderr)
	flag.VisitAll(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") {
			fs.Var(f.Value, f.Name, f.Usage)
		}
	})
	c.owners = map[string]string{}
	add := func(owner string, define func(*flag.FlagSet)) {
		own := flag.NewFlagSet("", flag.ContinueOnError)
		define(own)
		own.VisitAll(func(f *flag.Flag) {
			if fs.Lookup(f.Name) == nil {
				fs.Var(f.Value, f.Name, f.Usage)
				c.owners[f.Name] = owner
			}
		})
	}
	add("", c.engineFlags)
	names := slices.Sorted(maps.Keys(verbs))
	for _, name := range names {
		if flags := verbs[name].flags; flags != nil {
			add(name, func(own *flag.FlagSet) { flags(c, own) })
		}
	}
	fs.Usage = func() {
		fmt.Fprintf(c.stderr, "usage: %s [flags] [verb] [flags]\n\nverbs:\n", fs.Name())
		for _, name := range names {
			fmt.Fprintf(c.stderr, "  %-12s %s\n", name, verbs[name].about)
		}
		for _, name := range names {
			c.printFlags(fs, name, "\nflags of "+name+":")
		}
		c.printFlags(fs, "", "\nflags of run, which the other verbs take too (of those of the engine, checkpoints heeds -storage):")
	}
	return fs
}

// printFlags prints the flags that belong to a verb, or to none.
func (c *command) printFlags(fs *flag.FlagSet, owner, title string) {
	own, n := flag.NewFlagSet("", flag.ContinueOnError), 0
	own.SetOutput(c.stderr)
	fs.VisitAll(func(f *flag.Flag) {
		if c.owners[f.Name] == owner {
			own.Var(f.Value, f.Name, f.Usage)
			own.Lookup(f.Name).DefValue = f.DefValue
			n++
		}
	})
	if n > 0 {
		fmt.Fprintln(c.stderr, title)
		own.PrintDefaults()
	}
}

func (c *command) engineFlags(fs *flag.FlagSet) {
	o := &c.options
	fs.StringVar(&o.Storage, "storage", "", "`URL` of checkpoints: a directory or file:///path; mem: keeps them for as long as the process lives")
	fs.TextVar(&o.Mode, "mode", Guarantee(0), "`guarantee` within the job: exactly-once (if empty), at-least-once or at-most-once")
	fs.TextVar(&o.Require, "require", Guarantee(0), "refuse to start if the job cannot deliver this `guarantee` end to end")
	fs.IntVar(&o.Parallelism, "parallelism", 0, "subtasks of an operator; 0: the number of processors less one")
	fs.DurationVar(&o.Checkpoint.Interval, "interval", 0, "time between checkpoints; 0: 1s; negative: only at the end")
	fs.DurationVar(&o.Checkpoint.Timeout, "timeout", 0, "time after which a checkpoint is given up; 0: 10m")
	fs.IntVar(&o.Checkpoint.Retain, "retain", 0, "completed checkpoints to keep; 0: 3")
	fs.IntVar(&o.Restart.Attempts, "restarts", 0, "restarts after failures in a row before the job is given up; 0: for ever; negative: none")
	fs.BoolVar(&o.Fresh, "fresh", false, "start empty though there are checkpoints; what becomes of earlier output is each sink's to say, and is printed")
	fs.StringVar(&o.From, "from", "", "start from the checkpoint with this `id`, not from the latest")
	fs.BoolVar(&o.AcceptRepeats, "accept-repeats", false, "with -from: go back behind what a sink has committed, and commit it again")
	fs.BoolVar(&o.Takeover, "takeover", false, "start though another process seems to run the job; that one is fenced off")
	fs.Func("drop-state", "let go, at this start, of the state of an `operator`, or operator/state, that nothing claims any more; may be repeated", func(s string) error {
		if s == "" {
			return errors.New("a name is needed")
		}
		o.DropState = append(o.DropState, s)
		return nil
	})
	fs.Int64Var(&c.rate, "rate", 0, "records a second of each source that has no rate of its own; 0: no limit")
}

// planVerb prints the plan.
func planVerb(_ context.Context, c *command) int {
	p, err := c.job().Plan(c.options)
	if err != nil {
		return c.failed(err)
	}
	fmt.Fprint(c.stdout, p)
	return exitOK
}

// runVerb prints the plan, runs it, and sums up in one line.
func runVerb(ctx context.Context, c *command) int {
	j := c.job()
	o := c.options
	told := j.defaults.OnEvent
	var shown *progress
	o.OnEvent = func(e Event) {
		switch e := e.(type) {
		case Restored:
			text := fmt.Sprintf("resumed from checkpoint %d", e.ID)
			if e.Final {
				text += ": the job had ended with it, so nothing more is read (-fresh begins anew)"
			}
			shown.say(text)
		case Fresh:
			shown.say(fmt.Sprintf("fresh start, old output of %q: %s", e.Sink, e.Output))
		}
		shown.event(e)
		if told != nil {
			told(e)
		}
	}
	if o.Log == nil && j.defaults.Log == nil && isTerminal(c.stderr) && isTerminal(c.stdout) {
		// The line of progress tells what the log would tell at level info.
		o.Log = slog.New(slog.NewTextHandler(c.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	p, err := j.Plan(o)
	if err != nil {
		return c.failed(err)
	}
	fmt.Fprintln(c.stdout, p)
	shown = newProgress(c.stdout, p)
	x, err := j.start(ctx, p)
	if err != nil {
		return c.failed(err)
	}
	shown.show(x.Metrics)
	r, err := x.Wait()
	shown.stop()
	if err != nil {
		return c.failed(err)
	}
	fmt.Fprintln(c.stdout, r.summary(p))
	return exitOK
}

func (c *command) failed(err error) int {
	fmt.Fprintln(c.stderr, err)
	if errors.Is(err, ckptlog.ErrFenced) || errors.Is(err, connector.ErrFenced) {
		return exitFenced
	}
	return exitFailed
}

// summary is the last line of run. It counts the records of the sources and of
// the sinks whose count means records: those that are transactional, or all if
// none is. checkpoints are those that this process completed, restarts those
// within it. A run that was stopped before it knew what there is claims nothing.
func (r Result) summary(p *Plan) string {
	if r.Records == nil {
		return fmt.Sprintf("stopped before it started seconds=%.1f", r.Elapsed.Seconds())
	}
	var parts []string
	count := func(name string) { parts = append(parts, fmt.Sprintf("%s=%d", name, r.Records[name])) }
	transactional := slices.ContainsFunc(p.graph.Graph.Nodes, isTransactional)
	for _, n := range p.graph.Graph.Nodes {
		if n.Source != nil || n.Sink != nil && (!transactional || isTransactional(n)) {
			count(n.Name)
		}
	}
	return fmt.Sprintf("%s checkpoints=%d restarts=%d seconds=%.1f", strings.Join(parts, " "), r.Checkpoints, r.Restarts, r.Elapsed.Seconds())
}

func isTransactional(n graph.Node) bool {
	return n.Sink != nil && n.Sink.Kind == graph.SinkTransactional
}
