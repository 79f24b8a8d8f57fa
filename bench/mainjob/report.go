package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report collects rows: a bar, its value, a verdict.
type report struct {
	under  []string // conditions at the start
	rows   []row
	missed int
}

type row struct{ bar, value, verdict string }

func newReport(args []string) *report {
	r := &report{under: conditions(args)}
	fmt.Printf("# %s\n", strings.Join(r.under, "; "))
	return r
}

// bar reports a value against what is demanded of it.
func (r *report) bar(name, value string, ok bool) {
	verdict := "PASS"
	if !ok {
		verdict = "MISS"
		r.missed++
	}
	r.add(row{name, value, verdict})
}

// report reports a value of which nothing is demanded.
func (r *report) report(name, value string) { r.add(row{name, value, "reported"}) }

func (r *report) add(w row) {
	r.rows = append(r.rows, w)
	fmt.Printf("%-62s %s  %s\n", w.bar, w.value, w.verdict)
}

// conditions is under what the values hold. It is taken before anything is
// measured, for the measuring is a load itself.
func conditions(args []string) []string {
	return []string{
		time.Now().UTC().Format("2006-01-02 15:04"),
		"commit " + commit(),
		fmt.Sprintf("%s, %d CPUs (%s), %s/%s", runtime.Version(), runtime.GOMAXPROCS(0), processor(), runtime.GOOS, runtime.GOARCH),
		"go run ./bench/mainjob " + strings.Join(args, " "),
		"load at the start " + load(),
	}
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if name, ok := strings.CutPrefix(s.Text(), "model name"); ok {
			return strings.TrimLeft(name, "\t :")
		}
	}
	return "unknown"
}

// load is how many others wanted the processors: the more, the less the values
// say.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// record appends the table to a file.
func (r *report) record(path string) (err error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	w := bufio.NewWriter(f)
	fmt.Fprintf(w, "\n## Main job, %s\n\n%s.\n\n| bar | value | verdict |\n|---|---|---|\n",
		r.under[0], strings.Join(r.under[1:], "; "))
	for _, o := range r.rows {
		fmt.Fprintf(w, "| %s | %s | %s |\n", o.bar, o.value, o.verdict)
	}
	return w.Flush()
}

// median of what is not empty.
func median[T int64 | float64 | time.Duration](vs []T) T {
	if len(vs) == 0 {
		return 0
	}
	vs = slices.Clone(vs)
	slices.Sort(vs)
	return (vs[(len(vs)-1)/2] + vs[len(vs)/2]) / 2
}

// spread is the median, and the least and the greatest.
func spread(vs []float64) string {
	return fmt.Sprintf("%.3f (%.3f-%.3f)", median(vs), slices.Min(vs), slices.Max(vs))
}
