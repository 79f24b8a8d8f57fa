package task

import (
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// grant answers reservation i.
func (p *pipeline) grant(i int) { p.sources[0].Deliver(Reserved{Token: p.reserves[i]}) }

func (p *pipeline) reservedEnd(i int) int64 { return p.reserved[i][0].End.N }

func TestAtMostOnceEmitsOnlyWhatIsReserved(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1, mode: checkpoint.AtMostOnce})
	p.readers[0].most = 10
	p.readers[0].put(1, 1000)
	p.settle()
	if n := len(p.counters[0].sum); n != 0 || len(p.reserves) != 1 {
		t.Fatalf("%d records before any reservation, %d asked for", n, len(p.reserves))
	}
	first := p.reservedEnd(0)
	p.triggerSources(1)
	p.settle()
	if n := p.ackOf(1, sourceID(0)).Operators[0].Splits[0].N; n != 0 {
		t.Errorf("snapshot at %d, nothing was emitted", n)
	}
	emitted := func() int64 { return int64(len(p.counters[0].sum)) }
	p.grant(0)
	p.settle()
	if n := emitted(); n != first {
		t.Errorf("%d records, %d are reserved", n, first)
	}
	for i := 1; ; i++ {
		if i >= len(p.reserves) {
			break
		}
		// The next reservation is asked for while the former's records flow.
		before := emitted()
		if p.reservedEnd(i) <= p.reservedEnd(i-1) {
			t.Fatalf("reservations %v", p.reserved)
		}
		p.grant(i)
		p.settle()
		if n := emitted(); n != p.reservedEnd(i) || n <= before {
			t.Errorf("%d records, up to %d is reserved", n, p.reservedEnd(i))
		}
		p.triggerSources(checkpoint.ID(i + 1))
		p.settle()
		if n := p.ackOf(checkpoint.ID(i+1), sourceID(0)).Operators[0].Splits[0].N; n != emitted() {
			t.Errorf("snapshot at %d, %d records were emitted", n, emitted())
		}
	}
	if emitted() != 1000 {
		t.Errorf("%d records in the end", emitted())
	}
	if len(p.reserves) > 20 {
		t.Errorf("%d reservations for 100 polls: they do not grow while the log is slow", len(p.reserves))
	}
	p.mustBeFine()
}

func TestAtMostOnceEndsWhenEverythingIsEmitted(t *testing.T) {
	p := newPipeline(t, shape{sources: 1, keyed: 1, mode: checkpoint.AtMostOnce})
	p.readers[0].put(1, 100)
	p.readers[0].ended = true
	p.settle()
	if len(p.ended) != 0 {
		t.Fatal("ended while records are held")
	}
	for i := 0; i < len(p.reserves); i++ {
		p.grant(i)
		p.settle()
	}
	if len(p.ended) != 2 || len(p.counters[0].sum) != 100 {
		t.Errorf("ended %v, %d records", p.ended, len(p.counters[0].sum))
	}
}
