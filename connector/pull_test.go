package connector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/connectortest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbers is a Pull of n numbers in each of splits.
func numbers(splits, n int, bounded bool) connector.Pull[string] {
	return connector.Pull[string]{
		Describe: connector.SourceSpec{Replayable: true, Bounded: bounded, System: "numbers"},
		Splits: func(context.Context) (all []connector.Split, err error) {
			for i := range splits {
				all = append(all, connector.Split{ID: fmt.Sprint(i)})
			}
			return all, nil
		},
		Read: func(ctx context.Context, s connector.Split, emit func(string, connector.Offset) error) error {
			for i := s.Next.N; i < int64(n); i++ {
				if err := emit(fmt.Sprintf("%s:%d", s.ID, i), connector.Offset{N: i + 1}); err != nil {
					return err
				}
			}
			if !bounded {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		},
	}
}

func TestPullConforms(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		t.Run(fmt.Sprintf("bounded=%v", bounded), func(t *testing.T) {
			var n int
			connectortest.Source(t,
				func(*testing.T) connector.Source[string] { return numbers(3, n/3, bounded) },
				func(_ *testing.T, want int) { n = want })
		})
	}
}

func reader(t *testing.T, p connector.Pull[string]) connector.Reader[string] {
	t.Helper()
	r, err := p.Reader(t.Context(), connector.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(connector.Split{ID: "s"}); err != nil {
		t.Fatal(err)
	}
	return r
}

// poll waits until there is something.
func poll(r connector.Reader[string], max int) (values []string, next connector.Offset, err error) {
	for {
		var b connector.Batch[string]
		_, next, err = r.Poll(&b, max)
		if !errors.Is(err, connector.ErrEmpty) {
			return b.Values, next, err
		}
		<-r.Available()
	}
}

func TestPullHoldsTheReaderBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := numbers(1, 1<<20, true)
		var emitted atomic.Int64
		read := p.Read
		p.Read = func(ctx context.Context, s connector.Split, emit func(string, connector.Offset) error) error {
			return read(ctx, s, func(v string, o connector.Offset) error {
				err := emit(v, o)
				if err == nil {
					emitted.Add(1)
				}
				return err
			})
		}
		r := reader(t, p)
		synctest.Wait()
		full := emitted.Load()
		if full < 1 || full > 4096 {
			t.Errorf("%d records were read ahead", full)
		}
		if v, next, err := poll(r, 10); err != nil || len(v) != 10 || next.N != 10 {
			t.Errorf("%d records, %+v, %v: the offset is that of what was taken", len(v), next, err)
		}
		synctest.Wait()
		if got := emitted.Load(); got != full+10 {
			t.Errorf("%d records were read on, want 10", got-full)
		}
		r.Close() // ends the blocked emit, or the bubble deadlocks
	})
}

func TestPullErrorComesBehindTheRecords(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func() error
		want string
	}{
		{"error", func() error { return io.ErrUnexpectedEOF }, "read split s: unexpected EOF"},
		{"panic", func() error { panic("boom") }, "read split s: panic in Read: boom"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := numbers(1, 3, true)
			read := p.Read
			p.Read = func(ctx context.Context, s connector.Split, emit func(string, connector.Offset) error) error {
				if err := read(ctx, s, emit); err != nil {
					return err
				}
				return tt.end()
			}
			r := reader(t, p)
			defer r.Close()
			n := 0
			for n < 3 {
				v, next, err := poll(r, 2)
				if n += len(v); err != nil || next.N != int64(n) {
					t.Fatalf("after %d records: %+v, %v", n, next, err)
				}
			}
			for range 2 { // and it stays
				if v, next, err := poll(r, 2); len(v) != 0 || next.N != 3 || err == nil || !strings.HasPrefix(err.Error(), tt.want) {
					t.Errorf("got %q, %+v, %v; want %s", v, next, err, tt.want)
				}
			}
		})
	}
}

func TestPullAfterClose(t *testing.T) {
	r := reader(t, numbers(1, 10, false))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Add(connector.Split{ID: "late"}); err == nil {
		t.Error("a closed reader takes a split")
	}
}

func TestPullNeedsItsFunctions(t *testing.T) {
	var p connector.Pull[string]
	if _, err := p.Enumerator(t.Context(), connector.Instance{}); err == nil {
		t.Error("no error of Enumerator")
	}
	if _, err := p.Reader(t.Context(), connector.Instance{}); err == nil {
		t.Error("no error of Reader")
	}
}
