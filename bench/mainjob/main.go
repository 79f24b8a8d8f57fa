// Command mainjob measures the main job: records a second against a
// hand-written loop, what checkpoints cost, how long they stop a subtask, and
// what memory a snapshot takes. Each number stands beside a partner that was
// measured in the same run, in turn with it.
//
//	go run ./bench/mainjob                  # everything: a quarter of an hour
//	go run ./bench/mainjob -only count,sync # some of it
//	go run ./bench/mainjob -record FILE     # and append the table to FILE
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// config is what the flags say.
type config struct {
	rounds int           // of each measurement
	window time.Duration // of one round
	dir    string        // for checkpoints
	pinned bool          // compare by the time of the subtask's thread too
}

// group is a set of measurements that can be asked for by name.
type group struct {
	name string
	run  func(ctx context.Context, c config, r *report) error
}

var groups = []group{
	{"memory", measureMemory}, // first: the collector counts what jobs leave behind, too
	{"count", measureCount},
	{"allocs", measureAllocs},
	{"checkpoints", measureCheckpoints},
	{"large", measureLarge},
	{"stall", measureStall},
	{"sync", measureSync},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) int {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	flags := flag.NewFlagSet("mainjob", flag.ContinueOnError)
	c := config{}
	only := flags.String("only", "", "groups to measure, by comma: "+strings.Join(names, ","))
	record := flags.String("record", "", "file to append the table to")
	flags.IntVar(&c.rounds, "rounds", 5, "rounds of each measurement; the median counts")
	flags.DurationVar(&c.window, "window", 3*time.Second, "length of a round")
	flags.StringVar(&c.dir, "dir", "", "directory for checkpoints (default: a temporary one); its disk is measured too")
	flags.BoolVar(&c.pinned, "pinned", false, "give the subtask a thread and compare by its time too, for a machine that others use")
	profile := flags.String("cpuprofile", "", "file to write a profile of the processors to")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	want := names
	if *only != "" {
		want = strings.Split(*only, ",")
		for _, name := range want {
			if !slices.Contains(names, name) {
				fmt.Fprintf(os.Stderr, "there is no group %q; there are %s\n", name, strings.Join(names, ", "))
				return 2
			}
		}
	}
	dir, err := os.MkdirTemp(c.dir, "staunch-bench-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	c.dir = dir

	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer pprof.StopCPUProfile()
	}
	r := newReport(args)
	for _, g := range groups {
		if !slices.Contains(want, g.name) {
			continue
		}
		if err := g.run(ctx, c, r); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", g.name, err)
			return 1
		}
	}
	if *record != "" {
		if err := r.record(*record); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if r.missed > 0 {
		return 1
	}
	return 0
}
