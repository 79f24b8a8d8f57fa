package sim

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

// promise is what a mode lets the committed output differ by from that of a run
// in which nothing fails.
type promise struct {
	lost     bool // a record of the input may be missing
	repeated bool // a record may be there more than once
}

func promised(m checkpoint.Mode, quiet bool) promise {
	switch {
	case quiet || m == checkpoint.ExactlyOnce:
		return promise{}
	case m == checkpoint.AtLeastOnce:
		return promise{repeated: true}
	}
	return promise{lost: true}
}

// shape is what the oracle knows of the job.
type shape struct {
	stages int
	alarms bool
}

// checkOutput compares what was committed with the input.
func checkOutput(in [][]order, ledger []line, totals []total, j shape, may promise) error {
	if err := checkLedger(in, ledger, j, may); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if j.stages == 2 {
		if err := checkTotals(ledger, totals, may); err != nil {
			return fmt.Errorf("totals: %w", err)
		}
	}
	return nil
}

// checkLedger: every order once; of each key the lines are numbered without a
// gap, the balances are running sums, and orders of a split are in their order.
func checkLedger(in [][]order, ledger []line, j shape, may promise) error {
	lines, alarms := divide(ledger)
	if err := checkCauses(in, alarms); err != nil {
		return err
	}
	seen := map[[2]uint32]int{}
	byKey := map[uint32][]line{}
	for _, l := range lines {
		o := l.Order
		if int(o.Split) >= len(in) || int(o.Pos) >= len(in[o.Split]) || in[o.Split][o.Pos] != o {
			return fmt.Errorf("order %+v is not of the input", o)
		}
		at := [2]uint32{o.Split, o.Pos}
		if seen[at]++; seen[at] > 1 && !may.repeated {
			return fmt.Errorf("DUPLICATE: order %+v is there %d times", o, seen[at])
		}
		byKey[o.Key] = append(byKey[o.Key], l)
	}
	missing := 0
	var first order
	for s, orders := range in {
		for p, o := range orders {
			if seen[[2]uint32{uint32(s), uint32(p)}] == 0 {
				if missing == 0 {
					first = o
				}
				missing++
			}
		}
	}
	if missing > 0 && !may.lost {
		return fmt.Errorf("LOST: %d orders are missing, the first is %+v", missing, first)
	}
	if may.repeated {
		return nil // numbers and balances count what was repeated
	}
	alarmsOf := map[uint32][]line{}
	for _, l := range alarms {
		alarmsOf[l.Order.Key] = append(alarmsOf[l.Order.Key], l)
	}
	for key, lines := range byKey {
		slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.N, b.N) })
		var sum int64
		last := map[uint32]int64{}
		for i, l := range lines {
			sum += int64(l.Order.Amount)
			if int(l.N) != i+1 {
				return fmt.Errorf("key %d: line %d is numbered %d: %+v", key, i+1, l.N, l)
			}
			if l.Balance != sum {
				return fmt.Errorf("key %d: balance %d behind line %d, but the lines add up to %d", key, l.Balance, l.N, sum)
			}
			if before, ok := last[l.Order.Split]; ok && before >= int64(l.Order.Pos) {
				return fmt.Errorf("key %d: order %d of split %d comes behind order %d", key, l.Order.Pos, l.Order.Split, before)
			}
			last[l.Order.Split] = int64(l.Order.Pos)
		}
		if err := checkAlarms(lines, alarmsOf[key], j.alarms); err != nil {
			return err
		}
		delete(alarmsOf, key)
	}
	for key := range alarmsOf {
		return fmt.Errorf("key %d has alarms and no order", key)
	}
	return nil
}

// checkTotals: as the ledger, with its lines as the input.
func checkTotals(ledger []line, totals []total, may promise) error {
	wrote := map[line]int{}
	for _, l := range ledger {
		wrote[l]++
	}
	byBucket := map[uint32][]total{}
	orders := map[order]int{}
	for _, t := range totals {
		if t.Bucket != t.Line.Order.Key%3 {
			return fmt.Errorf("%+v is in bucket %d", t.Line, t.Bucket)
		}
		orders[t.Line.Order]++
		if may.repeated {
			continue
		}
		if wrote[t.Line]--; wrote[t.Line] < 0 {
			return fmt.Errorf("DUPLICATE: %+v is counted more often than it is in the ledger", t.Line)
		}
		byBucket[t.Bucket] = append(byBucket[t.Bucket], t)
	}
	for _, l := range ledger {
		if orders[l.Order] == 0 {
			return fmt.Errorf("LOST: %+v is in the ledger and in no total", l)
		}
	}
	for bucket, ts := range byBucket {
		slices.SortFunc(ts, func(a, b total) int { return cmp.Compare(a.N, b.N) })
		var sum int64
		last := map[uint32]uint32{}
		for i, t := range ts {
			sum += t.Line.Balance
			if int(t.N) != i+1 || t.Sum != sum {
				return fmt.Errorf("bucket %d: total %d is numbered %d and says %d instead of %d", bucket, i+1, t.N, t.Sum, sum)
			}
			if before := last[t.Line.Order.Key]; before > t.Line.N || before == t.Line.N && t.Line.Alarm == 0 {
				return fmt.Errorf("bucket %d: line %d of key %d comes behind line %d", bucket, t.Line.N, t.Line.Order.Key, before)
			}
			last[t.Line.Order.Key] = t.Line.N
		}
	}
	return nil
}
