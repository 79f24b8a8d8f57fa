package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/staunchdev/staunch/internal/checkpoint"
)

func TestWishesWaitForTheirTurn(t *testing.T) {
	var w wishes
	var got []error
	then := func(id checkpoint.ID, err error) { got = append(got, err) }
	w.waiting = append(w.waiting, then)
	w.asked = "t"
	w.refused(checkpoint.Refused{Token: "t", Reason: checkpoint.Busy})
	if len(got) != 0 || !w.busy {
		t.Fatalf("a wish that meets a pending checkpoint waits: %v, busy %v", got, w.busy)
	}
	w.ended(checkpoint.Stats{ID: 4})
	w.asked = "u"
	w.triggered("u", 5)
	w.ended(checkpoint.Stats{ID: 5, Failure: &checkpoint.Failure{Reason: checkpoint.Expired}})
	if len(got) != 1 || got[0] == nil || !strings.Contains(got[0].Error(), "expired") {
		t.Fatalf("a wish hears of its checkpoint's failure: %v", got)
	}
	w.waiting = append(w.waiting, then)
	w.fail(errors.New("over"))
	if len(got) != 2 || got[1] == nil {
		t.Fatalf("a wish is answered at the end: %v", got)
	}
}
