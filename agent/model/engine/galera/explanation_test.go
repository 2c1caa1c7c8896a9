package galera

import (
	"math"
	"strings"
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestConflicts guards that conflicts explain the part of the attempts that they undid.
func TestConflicts(t *testing.T) {
	write := cause.Statement{Text: "UPDATE t SET v = ?", Share: 0.8, StatementCounts: measure.StatementCounts{Executions: 1000, Seconds: 8}}
	for name, c := range map[string]struct {
		grown    map[*measure.Measure]float64
		executed []cause.Statement
		part     float64
		of, text string
	}{
		"half of the attempts":           {map[*measure.Measure]float64{engine.CertificationFailures: 400, aborts: 600}, []cause.Statement{write}, 0.5, "UPDATE t SET v = ?", "50 % of all attempts"},
		"without statements":             {map[*measure.Measure]float64{engine.CertificationFailures: 400, aborts: 600}, nil, 0.5, "n1", "400 transactions failed certification on n1 and 600 were aborted"},
		"only aborts are known":          {map[*measure.Measure]float64{aborts: 1000}, nil, 0.5, "n1", "0 transactions failed"},
		"none":                           {map[*measure.Measure]float64{engine.CertificationFailures: 0, aborts: 0}, nil, 0, "", ""},
		"a server without such counters": {nil, nil, 0, "", ""},
	} {
		found, is := conflicts(&cause.View{Target: "n1", Throughput: 100, Seconds: 10, Executed: c.executed, Record: &causetest.Record{Grown: c.grown}})
		if is != (c.part > 0) || math.Abs(found.Part-c.part) > 0.01 || found.Of != c.of || !strings.Contains(found.Evidence, c.text) {
			t.Errorf("%s: %v %+v", name, is, found)
		}
	}
}
