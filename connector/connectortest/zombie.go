package connectortest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/staunchdev/staunch/connector"
)

// zombie lets an attempt run on after a newer one has recovered. It may fail at
// anything, but must neither make visible what no checkpoint names nor disturb
// what its successor does.
func (s *system[T]) zombie(ctx context.Context, newer instance) error {
	old, err := s.newJob().start(ctx, s.open(), instance{1, 1})
	if err != nil {
		return err
	}
	for _, word := range []string{"w0", "w1", "p0", "p1", "C", "w0", "w1", "p0", "w0"} {
		if err := old.play(ctx, word); err != nil {
			return err
		}
	}
	log := old.log // checkpoint 2 is prepared by one subtask, and not in the log

	j := &job[T]{s: s, operator: old.operator, base: old.base, log: log, lastID: old.lastID}
	sink := s.open()
	if newer.generation == 1 {
		sink = old.sink
	}
	young, err := j.start(ctx, sink, newer)
	if err != nil {
		return err
	}
	if err := s.expect(j.base, j.upTo(log.read)); err != nil {
		return fmt.Errorf("after the recovery of the newer attempt: %w", err)
	}

	// Both prepare the checkpoints 2 and 3, with other contents, now one and now
	// the other first.
	for _, turn := range []struct {
		p     *process[T]
		words string
	}{
		{old, "p1"},
		{young, "w0 p0 w1 w1 p1 w0 p0"},
		{old, "p0 w1 p1"},
		{young, "w1 p1"},
		{old, "w0 w1 p0 p1"},
	} {
		for word := range strings.FieldsSeq(turn.words) {
			if err := turn.p.play(ctx, word); err != nil && turn.p == young {
				return fmt.Errorf("while the older attempt runs on: %w", err)
			}
		}
	}
	if newer.generation > 1 {
		// A coordinator that does not know yet that it was succeeded.
		old.commit(ctx)
		j := &job[T]{s: s, operator: old.operator, base: old.base, log: log}
		j.recover(ctx, old.sink, old.instance)
	}
	for _, w := range old.writers {
		w.Close()
	}
	if err := s.expect(j.base, j.upTo(log.read)); err != nil {
		return fmt.Errorf("while the older attempt runs on: %w", err)
	}
	young.complete()
	if err := young.commit(ctx); err != nil {
		return fmt.Errorf("after the older attempt ran on: %w", err)
	}
	if err := s.expect(j.base, j.upTo(young.log.read)); err != nil {
		return fmt.Errorf("after the commit of the newer attempt: %w", err)
	}
	for _, w := range young.writers {
		if err := w.Close(); err != nil {
			return fmt.Errorf("Close: %w", err)
		}
	}
	third, err := j.start(ctx, s.open(), instance{newer.generation + 1, 1})
	if err != nil {
		return err
	}
	return third.finish(ctx, scriptRecords)
}

// neighbours recovers one operator while another, whose name begins with its
// name, has prepared.
func (s *system[T]) neighbours(ctx context.Context) error {
	a, b := s.newJob(), s.newJob()
	b.operator = a.operator + "-2"
	p, err := b.start(ctx, s.open(), instance{1, 1})
	if err != nil {
		return err
	}
	for _, word := range []string{"w0", "w1", "p0", "p1", "C"} {
		if err := p.play(ctx, word); err != nil {
			return err
		}
	}
	q, err := a.start(ctx, s.open(), instance{7, 1})
	if err != nil {
		return err
	}
	if err := q.finish(ctx, 2); err != nil {
		return err
	}
	if err := p.commit(ctx); err != nil {
		return fmt.Errorf("after the recovery of another operator: %w", err)
	}
	return p.finish(ctx, scriptRecords)
}

// fencedZombie lets a process of an older generation write records that its
// successor does not: they must be refused.
func (s *system[T]) fencedZombie(ctx context.Context) error {
	j := s.newJob()
	old, err := j.start(ctx, s.open(), instance{1, 1})
	if err != nil {
		return err
	}
	if err := old.play(ctx, "w0"); err != nil {
		return err
	}
	young, err := j.start(ctx, s.open(), instance{2, 1})
	if err != nil {
		return err
	}
	before, err := s.visible(j.base)
	if err != nil {
		return err
	}
	for _, subtask := range []int{0, 1} {
		err := old.write(ctx, subtask, 3)
		if err == nil {
			err = old.prepare(ctx, subtask)
		}
		if !errors.Is(err, connector.ErrFenced) {
			return fmt.Errorf("a writer of an older generation got %v, want connector.ErrFenced", err)
		}
	}
	after, err := s.visible(j.base)
	if err != nil {
		return err
	}
	for i := range after {
		if before[i] == 0 {
			return fmt.Errorf("an older generation wrote %+v", s.make(i))
		}
	}
	if err := j.recover(ctx, old.sink, old.instance); !errors.Is(err, connector.ErrFenced) {
		return fmt.Errorf("Fence of an older generation got %v, want connector.ErrFenced", err)
	}
	for _, w := range old.writers {
		if err := w.Close(); err != nil {
			return fmt.Errorf("Close: %w", err)
		}
	}
	return young.finish(ctx, scriptRecords)
}
