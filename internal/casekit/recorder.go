package casekit

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/staunchdev/staunch/internal/checkpoint"
	"github.com/staunchdev/staunch/internal/cluster"
)

var background = context.Background()

// Recorder remembers what a run tells, in order.
type Recorder struct {
	mu     sync.Mutex
	events []cluster.Event
}

// On is for cluster.Options.OnEvent.
func (r *Recorder) On(e cluster.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// All are all events of one type so far.
func All[E cluster.Event](r *Recorder) (es []E) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e, ok := e.(E); ok {
			es = append(es, e)
		}
	}
	return es
}

// Completed are the completed checkpoints.
func (r *Recorder) Completed() (all []checkpoint.Stats) {
	for _, e := range All[cluster.Checkpointed](r) {
		all = append(all, e.Stats)
	}
	return all
}

// Failed are the failed checkpoints.
func (r *Recorder) Failed() (all []checkpoint.Stats) {
	for _, e := range All[cluster.CheckpointFailed](r) {
		all = append(all, e.Stats)
	}
	return all
}

// Lines is a logger's handler that keeps the lines of at least a level.
type Lines struct {
	slog.Handler
	b *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// NewLines returns a handler for slog.New.
func NewLines(level slog.Level) *Lines {
	b := &lockedBuffer{}
	return &Lines{slog.NewTextHandler(b, &slog.HandlerOptions{Level: level}), b}
}

// With are the lines that contain text.
func (l *Lines) With(text string) []string {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(l.b.String(), "\n"), "\n")
	return slices.DeleteFunc(lines, func(s string) bool { return s == "" || !strings.Contains(s, text) })
}
