package tidb

import (
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestCauses guards the causes of TiDB with composed numbers: no cluster with TiKV ran beside a load.
func TestCauses(t *testing.T) {
	run := func(grown map[*measure.Measure]float64, by map[*measure.Measure]map[string]float64, executed ...cause.Statement) *cause.View {
		return &cause.View{Limit: cause.State, Share: 0.5, Seconds: 20, Threads: 8, Throughput: 100, Executed: executed, Record: &causetest.Record{Grown: grown, By: by}}
	}
	pauses := func(by map[string]float64) map[*measure.Measure]map[string]float64 {
		return map[*measure.Measure]map[string]float64{backoffTime: by}
	}
	statement := func(text string, c measure.StatementCounts) cause.Statement {
		c.Executions, c.Seconds = 2000, 40
		return cause.Statement{Text: text, Share: 0.8, StatementCounts: c}
	}
	scan := statement("SELECT a", measure.StatementCounts{StorageSeconds: 30, RowsExamined: 2e7})
	for name, c := range map[string]struct {
		find func(*cause.View) (cause.Found, bool)
		view *cause.View
		part float64 // 0: silent
		text string
	}{
		"conflicts":             {conflicting, run(map[*measure.Measure]float64{retries: 800}, pauses(map[string]float64{"txnLock": 40})), 0.8, "repeated 800 times because of a conflict"},
		"pauses for locks":      {conflicting, run(nil, pauses(map[string]float64{"tikvLockFast": 40})), 0.5, "paused for locks for 40"},
		"few retries":           {conflicting, run(map[*measure.Measure]float64{retries: 5}, pauses(map[string]float64{"txnLock": 0.1})), 0, ""},
		"a busy store":          {hotRegion, run(nil, pauses(map[string]float64{"tikvServerBusy": 40, "regionMiss": 1})), 0.5, "since a store was busy (tikvServerBusy)"},
		"no pauses":             {hotRegion, run(nil, nil), 0, ""},
		"moving regions":        {backingOff, run(nil, pauses(map[string]float64{"regionMiss": 30, "tikvRPC": 10, "txnLock": 100})), 0.5, "mostly because of regionMiss"},
		"pauses of other kinds": {backingOff, run(nil, pauses(map[string]float64{"txnLock": 100})), 0, ""},
		"a scan":                {slowTasks, run(nil, nil, scan), 0.8, "TiKV computed 15.00 ms and read 10000 keys for each execution of SELECT a"},
		"short tasks":           {slowTasks, run(nil, nil, statement("SELECT a", measure.StatementCounts{StorageSeconds: 1, RowsExamined: 2e7})), 0, ""},
	} {
		found, is := c.find(c.view)
		if is != (c.part > 0) || is && (math.Abs(found.Part-c.part) > 0.01 || !strings.Contains(found.Evidence, c.text)) {
			t.Errorf("%s: %v %+v, want %v", name, is, found, c.part)
		}
	}
}
