package connectortest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/staunchdev/staunch/connector"
)

const subtasks = 2

// instance is the generation and attempt of a process.
type instance struct{ generation, attempt uint64 }

// job is what the engine is to a sink: a checkpoint log, replayable input, and
// processes that come and go. Record k of subtask s is base + k*subtasks + s.
type job[T any] struct {
	s        *system[T]
	operator string
	base     int
	log      checkpoint // the newest checkpoint
	lastID   connector.CheckpointID
}

// checkpoint is what survives a crash.
type checkpoint struct {
	read    [subtasks]int
	pending []connector.Committable
}

func (s *system[T]) newJob() *job[T] {
	s.runs++
	return &job[T]{s: s, operator: fmt.Sprintf("sink-%d", s.runs), base: s.runs * runSize}
}

// process is one attempt of the job.
type process[T any] struct {
	*job[T]
	instance
	sink      connector.Sink[T]
	writers   [subtasks]connector.Writer[T]
	read      [subtasks]int // records written
	prepared  [subtasks]int // of them before the last Prepare
	unsettled []connector.Committable
	id        connector.CheckpointID
}

func (j *job[T]) at(in instance, subtask int) connector.Instance {
	return connector.Instance{
		Job: "connectortest", Operator: j.operator, Subtask: subtask, Parallelism: subtasks,
		Lineage: 1, Generation: in.generation, Attempt: in.attempt, Log: slog.New(slog.DiscardHandler),
	}
}

// recover does what an attempt does before it makes writers.
func (j *job[T]) recover(ctx context.Context, sink connector.Sink[T], in instance) error {
	if c, ok := sink.(connector.Committer); ok && j.s.kind == connector.Transactional {
		if err := c.Recover(ctx, j.at(in, -1), slices.Clone(j.log.pending)); err != nil {
			return fmt.Errorf("Recover: %w", err)
		}
	}
	if f, ok := sink.(connector.Fencer); ok {
		if err := f.Fence(ctx, j.at(in, -1)); err != nil {
			return fmt.Errorf("Fence: %w", err)
		}
	}
	return nil
}

// start begins an attempt from the newest checkpoint.
func (j *job[T]) start(ctx context.Context, sink connector.Sink[T], in instance) (*process[T], error) {
	if err := j.recover(ctx, sink, in); err != nil {
		return nil, err
	}
	p := &process[T]{job: j, instance: in, sink: sink, read: j.log.read, prepared: j.log.read, id: j.lastID}
	for i := range p.writers {
		w, err := sink.Writer(ctx, j.at(in, i))
		if err != nil {
			return nil, fmt.Errorf("Writer: %w", err)
		}
		p.writers[i] = w
	}
	return p, nil
}

// write writes the next n records of a subtask as one batch.
func (p *process[T]) write(ctx context.Context, subtask, n int) error {
	var b connector.Batch[T]
	for range n {
		b.Values = append(b.Values, p.s.record(p.base+p.read[subtask]*subtasks+subtask))
		p.read[subtask]++
	}
	err := p.writers[subtask].Write(ctx, b)
	clear(b.Values) // it must keep none of b's slices
	if err != nil {
		return fmt.Errorf("Write: %w", err)
	}
	return nil
}

// prepare ends the epoch of a subtask.
func (p *process[T]) prepare(ctx context.Context, subtask int) error {
	cs, err := p.writers[subtask].Prepare(ctx, p.id)
	if err != nil {
		return fmt.Errorf("Prepare: %w", err)
	}
	if n := p.read[subtask] - p.prepared[subtask]; len(cs) > 0 && (n == 0 || p.s.kind != connector.Transactional) {
		return fmt.Errorf("Prepare returned %d committables for %d records of a sink that is %v", len(cs), n, p.s.kind)
	}
	p.prepared[subtask] = p.read[subtask]
	for _, c := range cs {
		for _, o := range p.unsettled {
			if o.ID == c.ID {
				return fmt.Errorf("two committables have the ID %s", c.ID)
			}
		}
	}
	p.unsettled = append(p.unsettled, cs...)
	return nil
}

// complete appends the checkpoint to the log.
func (p *process[T]) complete() {
	p.lastID = p.id
	p.log = checkpoint{read: p.prepared, pending: slices.Clone(p.unsettled)}
}

// commit commits what the newest checkpoint holds.
func (p *process[T]) commit(ctx context.Context) error {
	c, ok := p.sink.(connector.Committer)
	if !ok || p.s.kind != connector.Transactional {
		return nil
	}
	if err := c.Commit(ctx, p.log.pending); err != nil {
		return fmt.Errorf("Commit: %w", err)
	}
	p.unsettled = slices.DeleteFunc(p.unsettled, func(c connector.Committable) bool {
		return slices.ContainsFunc(p.log.pending, func(o connector.Committable) bool { return o.ID == c.ID })
	})
	return nil
}

// upTo is the records before a position.
func (j *job[T]) upTo(read [subtasks]int) map[int]bool {
	want := map[int]bool{}
	for s, n := range read {
		for k := range n {
			want[j.base+k*subtasks+s] = true
		}
	}
	return want
}

// finish writes up to total records a subtask, takes a checkpoint, commits it,
// and checks that all is there.
func (p *process[T]) finish(ctx context.Context, total int) error {
	p.id++
	for s := range p.writers {
		if err := p.write(ctx, s, total-p.read[s]); err != nil {
			return err
		}
	}
	for s := range p.writers {
		if err := p.prepare(ctx, s); err != nil {
			return err
		}
	}
	p.complete()
	if err := p.commit(ctx); err != nil {
		return err
	}
	want := p.upTo(p.log.read)
	if err := p.s.expect(p.base, want); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	for _, w := range p.writers {
		if err := w.Close(); err != nil {
			return fmt.Errorf("Close: %w", err)
		}
	}
	return nil
}
