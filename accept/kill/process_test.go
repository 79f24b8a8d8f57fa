package kill

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var built struct {
	sync.Mutex
	dir  string
	bins map[string]string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// build builds a job, once a set of flags.
func build(t *testing.T, pkg string, flags ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	key := pkg + " " + strings.Join(flags, " ")
	if bin := built.bins[key]; bin != "" {
		return bin
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "staunch-kill")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.bins = dir, map[string]string{}
	}
	bin := filepath.Join(built.dir, "job-"+strconv.Itoa(len(built.bins)))
	args := append([]string{"build", "-o", bin}, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	built.bins[key] = bin
	return bin
}

// process is one run of the main job.
type process struct {
	cmd    *exec.Cmd
	out    *output
	exited chan struct{}
	err    error
}

// output gathers what a process prints while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func start(t *testing.T, bin string, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(bin, args...), out: &output{}, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.Env = append(os.Environ(), env...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p
}

// kill kills the process as kill -9 does, and says whether it was still
// unfinished. A process that had failed by itself fails the test.
func (p *process) kill(t *testing.T) (unfinished bool) {
	t.Helper()
	p.cmd.Process.Kill()
	<-p.exited
	if p.err == nil {
		return false
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) && exit.ExitCode() != -1 {
		t.Fatalf("the job failed by itself: %v\n%s", p.err, p.out)
	}
	return true
}

// diesAt waits until a process has killed itself at a point.
func (p *process) diesAt(t *testing.T, at string, d time.Duration) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(d):
		p.cmd.Process.Kill()
		<-p.exited
		t.Fatalf("the job did not come to %s within %v\n%s", at, d, p.out)
	}
	if !strings.Contains(p.out.String(), "killed at "+at+"\n") {
		t.Fatalf("the job ended before it came to %s: %v\n%s", at, p.err, p.out)
	}
}

// finishWithin waits for a process that is left alone; it must end well.
func (p *process) finishWithin(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(d):
		p.cmd.Process.Kill()
		<-p.exited
		t.Fatalf("the job did not end within %v\n%s", d, p.out)
	}
	if p.err != nil {
		t.Fatalf("the job failed: %v\n%s", p.err, p.out)
	}
}

var resumedLine = regexp.MustCompile(`resumed from checkpoint (\d+)`)

// resumed returns the checkpoint that the process went on from.
func (p *process) resumed() (id int, ok bool) {
	m := resumedLine.FindStringSubmatch(p.out.String())
	if m == nil {
		return 0, false
	}
	id, err := strconv.Atoi(m[1])
	return id, err == nil
}

// lastLine is the summary of a job that ended.
func (p *process) lastLine() string {
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	return lines[len(lines)-1]
}
