package sessions

import (
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

func TestLockName(t *testing.T) {
	for mode, want := range map[string]string{ // MariaDB 10.11, MySQL 8.0
		"X": "record", "X,GAP": "gap", "S,REC_NOT_GAP": "record", "X,GAP,INSERT_INTENTION": "gap, to insert", "X,INSERT_INTENTION": "gap, to insert",
	} {
		if got := lockName("`a`.`b`", "`k`", mode); got != "a.b, index k ("+want+")" {
			t.Errorf("%s: %s", mode, got)
		}
	}
}

// TestLocksOfOneIndex guards that few waits say nothing.
func TestLocksOfOneIndex(t *testing.T) {
	view := func(by map[string]float64) *cause.View {
		return &cause.View{Record: &causetest.Record{By: map[*measure.Measure]map[string]float64{waitedFor: by}}}
	}
	if f, is := oneIndex(view(map[string]float64{"a, index k (gap)": 30, "b, index PRIMARY (record)": 10})); !is ||
		math.Abs(f.Part-0.6) > 1e-9 || f.Of != "a, index k (gap)" || !strings.Contains(f.Test, "READ COMMITTED") {
		t.Errorf("%v %+v", is, f)
	}
	if f, is := oneIndex(view(map[string]float64{"a": 2})); is {
		t.Errorf("of two waits: %+v", f)
	}
}
