package gen

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/staunchdev/staunch/connector"
	"github.com/staunchdev/staunch/connector/connectortest"
)

type rec struct {
	Split int
	I     int64
}

func makeRec(split int, i int64) rec { return rec{split, i} }

func TestSourceConforms(t *testing.T) {
	for _, splits := range []int{0, 1, 7, 100} {
		for _, rate := range []int64{0, 100_000} {
			t.Run(fmt.Sprintf("splits=%d,rate=%d", splits, rate), func(t *testing.T) {
				var count int
				connectortest.Source(t,
					func(*testing.T) connector.Source[rec] {
						return &Source[rec]{Make: makeRec, Count: int64(count), Splits: splits, Rate: rate}
					},
					func(_ *testing.T, n int) { count = n })
			})
		}
	}
}

func TestCountIsDividedOverSplits(t *testing.T) {
	e, err := (&Source[rec]{Make: makeRec, Count: 11, Splits: 4}).Enumerator(t.Context(), connector.Instance{})
	if err != nil {
		t.Fatal(err)
	}
	found, more, err := e.Discover(t.Context())
	if err != nil || more || len(found) != 4 {
		t.Fatalf("%+v, %v, %v", found, more, err)
	}
	for i, want := range []int64{3, 3, 3, 2} {
		if found[i].End.N != want {
			t.Errorf("split %d has %d records, want %d", i, found[i].End.N, want)
		}
	}
}

func TestFaultsOfConfiguration(t *testing.T) {
	for _, s := range []*Source[rec]{{}, {Make: makeRec, Count: -1}, {Make: makeRec, Rate: -1}, {Make: makeRec, Splits: -1}} {
		if _, err := s.Enumerator(t.Context(), connector.Instance{}); err == nil {
			t.Errorf("%+v: no error of Enumerator", s)
		}
		if _, err := s.Reader(t.Context(), connector.Instance{}); err == nil {
			t.Errorf("%+v: no error of Reader", s)
		}
	}
}

// pollFor polls for d of the bubble's time, and returns the records made.
func pollFor(t *testing.T, r connector.Reader[rec], d time.Duration) (n int) {
	end := time.NewTimer(d)
	for {
		var b connector.Batch[rec]
		_, _, err := r.Poll(&b, 1024)
		n += len(b.Values)
		switch {
		case errors.Is(err, connector.ErrEmpty):
			select {
			case <-r.Available():
			case <-end.C:
				return n
			}
		case err == io.EOF:
			return n
		case err != nil:
			t.Fatal(err)
		}
	}
}

func TestRateIsHeldAndNotMadeUpFor(t *testing.T) {
	for _, tt := range []struct {
		rate   int64
		splits int
	}{{10, 1}, {10, 3}, {7, 4}, {1000, 3}, {1_000_000, 2}, {3, 10}} {
		t.Run(fmt.Sprintf("%d a second, %d splits", tt.rate, tt.splits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Source[rec]{Make: makeRec, Rate: tt.rate, Splits: tt.splits}
				start := func(at int64) connector.Reader[rec] {
					r, err := s.Reader(t.Context(), connector.Instance{})
					if err != nil {
						t.Fatal(err)
					}
					for i := range tt.splits {
						if err := r.Add(connector.Split{ID: fmt.Sprint(i), Next: connector.Offset{N: at}}); err != nil {
							t.Fatal(err)
						}
					}
					return r
				}
				within := func(got int, seconds float64, extra int64) {
					t.Helper()
					want := float64(tt.rate) * seconds
					slack := 0.001*want + float64(extra) + float64(tt.rate)*leastWait.Seconds() + 1
					if float64(got) < want-slack || float64(got) > want+slack {
						t.Errorf("%d records in %v s, want %.0f +- %.0f", got, seconds, want, slack)
					}
				}
				r := start(0)
				within(pollFor(t, r, 20*time.Second), 20, int64(tt.splits))

				// A pause is made up for by no more than burst.
				<-time.After(time.Hour)
				within(pollFor(t, r, 10*time.Second), 10, int64(tt.splits)+int64(float64(tt.rate)*burst.Seconds()))
				r.Close()

				// A restart far into the split begins at the rate at once.
				r = start(1_000_000_000)
				within(pollFor(t, r, 10*time.Second), 10, int64(tt.splits))
				r.Close()
			})
		})
	}
}

// The products of times and rates stay in range in a job that runs for years.
func TestRateOverYears(t *testing.T) {
	p := pace{rate: 2_000_000, splits: 3}
	now := time.Now()
	s := p.begin(1, now)
	made := int64(0)
	for range 100_000 {
		now = now.Add(50 * time.Millisecond)
		n, _ := p.due(&s, now)
		p.take(&s, n)
		made += n
	}
	if want := int64(5000) * p.rate / p.splits; made < want-100 || made > want+100 {
		t.Errorf("%d records in 5000 s, want %d", made, want)
	}
}
