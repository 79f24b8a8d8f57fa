package kill

import (
	"path/filepath"
	"testing"
)

// seen is a line of the idempotent job.
type seen struct {
	Customer string `json:"customer"`
	Orders   int64  `json:"orders"`
	Largest  int64  `json:"largest"`
}

func TestKillsOtherModes(t *testing.T) {
	t.Parallel()
	t.Run("at-least-once", testAtLeastOnce)
	t.Run("idempotent state", testIdempotentState)
	t.Run("at-most-once", testAtMostOnce)
}

// Nothing is lost; what was read again stands in the ledger again.
func testAtLeastOnce(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	in := writeInput(t, r, rate*(2+kills()), 8, 4, 2, 1)
	c := newCampaign(t, in, orders(t), "at-least-once")
	c.mustAtRandom(t, r, kills())
	c.finish(t)

	v := judge(in, readLedger(t, c.data))
	t.Logf("accept: at-least-once: %d orders, %d kills, %d starts resumed, lost %d, repeated %d", len(in.orders), c.kills, c.resumed, v.lost, v.twice)
	if v.lost > 0 || v.alien > 0 {
		t.Errorf("at-least-once lost %d orders and made up %d", v.lost, v.alien)
	}
	// A customer has at least as many orders as there are, none of them missing.
	want := map[string]int64{}
	for _, o := range in.orders {
		want[o.Customer]++
	}
	got := readTotals(t, c.data)
	for customer, n := range want {
		if got[customer].Orders < n {
			t.Errorf("totals have %d orders of %s, which has %d", got[customer].Orders, customer, n)
		}
	}
}

// State that a repeated record does not change ends exact.
func testIdempotentState(t *testing.T) {
	if testing.Short() {
		t.Skip("builds one more job")
	}
	t.Parallel()
	r := newRand(t)
	in := writeInput(t, r, rate*(2+kills()), 8, 4, 2, 1)
	c := newCampaign(t, in, build(t, "./accept/kill/idempotent"), "at-least-once")
	c.mustAtRandom(t, r, kills())
	c.finish(t)

	want := map[string]seen{}
	for _, o := range in.orders {
		s, ok := want[o.Customer]
		if !ok || o.Cents > s.Largest {
			s.Largest = o.Cents
		}
		s.Customer = o.Customer
		s.Orders++
		want[o.Customer] = s
	}
	// The state only grows, so the line with the most ids shows how it ended.
	ended, lines := map[string]seen{}, 0
	for _, l := range readLines[seen](t, filepath.Join(c.data, "out", "seen")) {
		lines++
		e := ended[l.Customer]
		if l.Orders > e.Orders || l.Orders == e.Orders && l.Largest > e.Largest {
			ended[l.Customer] = l
		}
	}
	wrong := 0
	for customer, w := range want {
		if ended[customer] != w {
			wrong++
		}
	}
	t.Logf("accept: idempotent state: %d orders, %d kills, %d lines repeated, %d of %d customers wrong", len(in.orders), c.kills, lines-len(in.orders), wrong, len(want))
	if wrong > 0 || len(ended) != len(want) {
		t.Errorf("%d customers of %d ended wrong; there are %d", wrong, len(want), len(ended))
	}
}

// Nothing is there twice; what is lost was reserved by a process that was
// killed, and had not come into a checkpoint.
func testAtMostOnce(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	in := writeInput(t, r, rate*(2+kills()*5/4), 8, 4, 2, 1) // nothing is read again, so the input is used up faster
	c := newCampaign(t, in, orders(t), "at-most-once")
	allowed := map[string]bool{}
	c.killed = func() {
		for _, id := range reservedOnly(t, in, c.data) {
			allowed[id] = true
		}
	}
	c.mustAtRandom(t, r, kills())
	c.finish(t)

	ledger := readLedger(t, c.data)
	v := judge(in, ledger)
	// What was reserved may have been emitted. It must not be emitted again, though
	// this sink has taken it back.
	missing := lost(in, ledger)
	beyond, again := 0, 0
	for id := range missing {
		if !allowed[id] {
			beyond++
		}
	}
	for id := range allowed {
		if !missing[id] {
			again++
		}
	}
	// An order that state counted twice would take two numbers: there would be
	// two lines of it, or a gap.
	excess := 0
	orders := map[string]int64{}
	for _, o := range in.orders {
		orders[o.Customer]++
	}
	for customer, x := range readTotals(t, c.data) {
		if x.Orders > orders[customer] {
			excess++
		}
	}
	t.Logf("accept: at-most-once: %d orders, %d kills, %d starts resumed, twice %d, gaps %d, lost %d of %d that the reservations allow (%d beyond, %d read again)",
		len(in.orders), c.kills, c.resumed, v.twice, v.gaps, v.lost, len(allowed), beyond, again)
	lostOnly := verdict{lost: v.lost}
	if v != lostOnly || excess > 0 {
		t.Errorf("not at most once: %+v, %d totals above the input's", v, excess)
	}
	if beyond > 0 {
		t.Errorf("%d orders are lost that no reservation of a killed process held", beyond)
	}
	if again > 0 {
		t.Errorf("%d orders were read again that a killed process may have emitted", again)
	}
	if v.lost > len(in.orders)/2 {
		t.Errorf("%d of %d orders are lost, more than half", v.lost, len(in.orders))
	}
}
