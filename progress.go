package staunch

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress shows what a run does: records a second, the last checkpoint, and a
// bar where the input is bounded. On a terminal it keeps one line up to date;
// elsewhere it prints a line now and then.
type progress struct {
	w        io.Writer
	terminal bool
	width    int
	sources  []string
	bounded  bool
	metrics  func() map[string]int64

	mu    sync.Mutex // guards what follows, and writes to w
	last  *Checkpointed
	shown bool // a line of progress stands on the terminal

	before  int64
	at      time.Time
	stopped chan struct{}
	done    chan struct{}
}

// The periods of the display.
const (
	terminalPeriod = 200 * time.Millisecond
	plainPeriod    = 2 * time.Second
)

func newProgress(w io.Writer, p *Plan) *progress {
	g := &progress{w: w, stopped: make(chan struct{}), done: make(chan struct{}), bounded: true}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		g.terminal = true
		g.width, _, _ = term.GetSize(int(f.Fd()))
	}
	for _, n := range p.graph.Graph.Nodes {
		if n.Source != nil {
			g.sources = append(g.sources, n.Name)
			g.bounded = g.bounded && n.Source.Bounded
		}
	}
	return g
}

// say prints a line of its own.
func (g *progress) say(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
	fmt.Fprintln(g.w, line)
}

// clear takes the line of progress away.
func (g *progress) clear() {
	if g.terminal && g.shown {
		fmt.Fprint(g.w, "\r\x1b[K")
	}
	g.shown = false
}

// event keeps the last checkpoint.
func (g *progress) event(e Event) {
	if c, ok := e.(Checkpointed); ok {
		g.mu.Lock()
		g.last = &c
		g.mu.Unlock()
	}
}

// show shows the metrics until stop.
func (g *progress) show(metrics func() map[string]int64) {
	g.metrics, g.at = metrics, time.Now()
	period := plainPeriod
	if g.terminal {
		period = terminalPeriod
	}
	go func() {
		defer close(g.done)
		t := time.NewTicker(period)
		defer t.Stop()
		for {
			select {
			case now := <-t.C:
				g.print(g.line(now))
			case <-g.stopped:
				return
			}
		}
	}()
}

func (g *progress) stop() {
	close(g.stopped)
	<-g.done
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clear()
}

func (g *progress) print(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.terminal {
		fmt.Fprintln(g.w, line)
		return
	}
	g.shown = true
	if r := []rune(line); g.width > 1 && len(r) >= g.width {
		line = string(r[:g.width-1])
	}
	fmt.Fprintf(g.w, "\r\x1b[K%s", line)
}

func (g *progress) line(now time.Time) string {
	m := g.metrics()
	var records int64
	for _, s := range g.sources {
		records += m[s+".records"]
	}
	rate := float64(records-g.before) / max(now.Sub(g.at).Seconds(), 1e-3)
	g.before, g.at = records, now

	var b strings.Builder
	if permille, known := m["input.done_permille"]; known && g.bounded && g.terminal {
		b.WriteString(bar(permille) + " ")
	}
	fmt.Fprintf(&b, "%d records, %.0f/s", records, rate)
	g.mu.Lock()
	last := g.last
	g.mu.Unlock()
	if last == nil {
		b.WriteString(", no checkpoint yet")
	} else {
		fmt.Fprintf(&b, ", checkpoint %d: %v, %s", last.ID, last.Duration.Round(time.Millisecond), bytesText(last.Bytes))
	}
	return b.String()
}

// bar is a progress bar of 20 places.
func bar(permille int64) string {
	full := int(min(max(permille, 0), 1000)) / 50
	return fmt.Sprintf("[%s%s] %3d%%", strings.Repeat("=", full), strings.Repeat(" ", 20-full), permille/10)
}

func bytesText(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	x, i := float64(n), 0
	for x >= 1000 && i < len(units)-1 {
		x /= 1000
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[i])
}

// isTerminal says whether what is written to w is read by a person at once.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
