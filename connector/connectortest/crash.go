package connectortest

import (
	"context"
	"fmt"
	"strings"
)

// script is the life of a process, one call a word: wN and pN are Write and
// Prepare of subtask N, C appends the checkpoint to the log, A aborts it, M
// commits. It has a write of the next epoch before the commit of the last, an
// aborted checkpoint whose committables go with the next, an epoch without
// records, one where only one subtask had any, and a commit that is repeated.
const script = "w0 w1 p0 p1 C w0 M w1 w0 p0 p1 A w1 p0 p1 C M M p0 p1 C M w0 w1 p0 p1 C w1 M p0 p1 C M M"

// scriptRecords is more than a subtask writes by the script, wherever it is cut.
const scriptRecords = 20

// crashes plays the script once for each place to cut it, and lets a new attempt
// go on from the newest checkpoint. restart is one within the process: the sink
// stays, the writers are closed, and the generation is the same.
func (s *system[T]) crashes(ctx context.Context, restart bool) error {
	words := strings.Fields(script)
	for cut := range len(words) + 1 {
		if err := s.crash(ctx, words[:cut], restart); err != nil {
			return fmt.Errorf("after %q: %w", strings.Join(words[:cut], " "), err)
		}
	}
	return nil
}

func (s *system[T]) crash(ctx context.Context, words []string, restart bool) error {
	p, err := s.newJob().start(ctx, s.open(), instance{1, 1})
	if err != nil {
		return err
	}
	committed := p.log
	for _, w := range words {
		if err := p.play(ctx, w); err != nil {
			return err
		}
		if w == "M" {
			committed = p.log
		}
	}
	if err := s.expect(p.base, p.upTo(committed.read)); err != nil {
		return fmt.Errorf("before the crash: %w", err)
	}

	sink, next := s.open(), instance{2, 1}
	if restart {
		sink, next = p.sink, instance{1, 2}
	}
	for _, w := range p.writers {
		if !restart {
			s.drop(w)
		} else if err := w.Close(); err != nil {
			return fmt.Errorf("Close: %w", err)
		}
	}
	// A recovery that crashes as well is followed by another one.
	if err := p.recover(ctx, sink, next); err != nil {
		return err
	}
	if err := s.expect(p.base, p.upTo(p.log.read)); err != nil {
		return fmt.Errorf("after recovery: %w", err)
	}
	if !restart {
		sink = s.open()
	}
	next.attempt++
	q, err := p.job.start(ctx, sink, next)
	if err != nil {
		return err
	}
	return q.finish(ctx, scriptRecords)
}

// play does one word of the script.
func (p *process[T]) play(ctx context.Context, word string) error {
	switch word {
	case "w0":
		return p.write(ctx, 0, 3)
	case "w1":
		return p.write(ctx, 1, 2)
	case "p0":
		p.id++
		return p.prepare(ctx, 0)
	case "p1":
		return p.prepare(ctx, 1)
	case "C":
		p.complete()
	case "M":
		return p.commit(ctx)
	}
	return nil
}
