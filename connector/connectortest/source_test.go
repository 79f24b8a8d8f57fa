package connectortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/connector"
)

// faulty wraps the readers of a sound source.
type faulty struct {
	connector.Source[string]
	poll func(r connector.Reader[string], b *connector.Batch[string], limit int) (string, connector.Offset, error)
	add  func(connector.Split) connector.Split
	enum func(connector.Enumerator) connector.Enumerator
}

func (f faulty) Enumerator(ctx context.Context, i connector.Instance) (connector.Enumerator, error) {
	e, err := f.Source.Enumerator(ctx, i)
	if f.enum != nil {
		e = f.enum(e)
	}
	return e, err
}

func (f faulty) Reader(ctx context.Context, i connector.Instance) (connector.Reader[string], error) {
	r, err := f.Source.Reader(ctx, i)
	return faultyReader{r, f}, err
}

type faultyReader struct {
	connector.Reader[string]
	f faulty
}

func (r faultyReader) Add(s connector.Split) error {
	if r.f.add != nil {
		s = r.f.add(s)
	}
	return r.Reader.Add(s)
}

func (r faultyReader) Poll(b *connector.Batch[string], limit int) (string, connector.Offset, error) {
	if r.f.poll != nil {
		return r.f.poll(r.Reader, b, limit)
	}
	return r.Reader.Poll(b, limit)
}

type forgetful struct{ connector.Enumerator }

func (forgetful) Restore([]byte) error { return nil }

func sound() connector.Source[string] {
	return connector.Pull[string]{
		Describe: connector.SourceSpec{Replayable: true, Bounded: true},
		Splits: func(context.Context) ([]connector.Split, error) {
			return []connector.Split{{ID: "a"}, {ID: "b"}}, nil
		},
		Read: func(_ context.Context, s connector.Split, emit func(string, connector.Offset) error) error {
			for i := s.Next.N; i < sourceRecords/2; i++ {
				if err := emit(fmt.Sprint(s.ID, i), connector.Offset{N: i + 1}); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func sourceVerdict(ctx context.Context, open func() connector.Source[string]) error {
	s := &sourceSystem[string]{open: open, n: sourceRecords}
	for _, c := range s.checks() {
		if err := c.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func TestSoundSourcePasses(t *testing.T) {
	if err := sourceVerdict(t.Context(), sound); err != nil {
		t.Error(err)
	}
}

func TestBrokenSourcesAreCaught(t *testing.T) {
	type batch = connector.Batch[string]
	for _, tt := range []struct {
		name string
		f    faulty
		want string
	}{
		{"offset of the record and not behind it", faulty{poll: func(r connector.Reader[string], b *batch, limit int) (string, connector.Offset, error) {
			s, next, err := r.Poll(b, limit)
			next.N = max(next.N-1, 0)
			return s, next, err
		}}, "from offset"},
		{"offset one too far", faulty{poll: func(r connector.Reader[string], b *batch, limit int) (string, connector.Offset, error) {
			s, next, err := r.Poll(b, limit)
			next.N++
			return s, next, err
		}}, "from offset"},
		{"starts over", faulty{add: func(s connector.Split) connector.Split { s.Next = connector.Offset{}; return s }}, "from offset"},
		{"drops the records that come with EOF", faulty{poll: func(r connector.Reader[string], b *batch, limit int) (string, connector.Offset, error) {
			s, next, err := r.Poll(b, limit)
			if err == io.EOF {
				b.Values = b.Values[:1]
			}
			return s, next, err
		}}, "records were read"},
		{"exceeds max", faulty{poll: func(r connector.Reader[string], b *batch, limit int) (string, connector.Offset, error) {
			return r.Poll(b, 2*limit)
		}}, "at most"},
		{"overwrites the batch", faulty{poll: func(r connector.Reader[string], b *batch, limit int) (string, connector.Offset, error) {
			b.Values = b.Values[:0]
			return r.Poll(b, limit)
		}}, ""},
		{"names another split", faulty{poll: func(r connector.Reader[string], b *batch, limit int) (string, connector.Offset, error) {
			_, next, err := r.Poll(b, limit)
			return "c", next, err
		}}, "named split"},
		{"EOF for nothing now", faulty{poll: func(r connector.Reader[string], b *batch, limit int) (string, connector.Offset, error) {
			s, next, err := r.Poll(b, limit)
			if errors.Is(err, connector.ErrEmpty) {
				err = io.EOF
			}
			return s, next, err
		}}, ""},
		{"enumerator forgets", faulty{enum: func(e connector.Enumerator) connector.Enumerator { return forgetful{e} }}, "after a Restore"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.f.Source = sound()
			err := sourceVerdict(t.Context(), func() connector.Source[string] { return tt.f })
			if err == nil {
				t.Fatal("not caught")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("caught as %q, want %q", err, tt.want)
			}
			t.Log(err)
		})
	}
}
