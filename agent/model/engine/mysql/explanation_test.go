package mysql

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/cause/causetest"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// TestPurgeThatCannotAdvanceDelaysNothing guards that a long history list limits no writes of a MariaDB
// that purges nothing.
func TestPurgeThatCannotAdvanceDelaysNothing(t *testing.T) {
	for _, c := range []struct {
		version string
		lengths []float64
		want    bool
	}{
		{"10.11.19-MariaDB", []float64{100, 900, 1700, 2500, 3300}, false},
		{"10.11.19-MariaDB", []float64{900, 100, 1700, 2500, 3300}, false}, // while it was short
		{"10.11.19-MariaDB", []float64{100, 1700, 1500, 2500, 3300}, true},
		{"9.7.0", []float64{100, 900, 1700, 2500, 3300}, true},
	} {
		v := &cause.View{Version: c.version, Record: &causetest.Record{
			Over: map[*measure.Measure][]float64{HistoryList: c.lengths}, Settings: map[string]string{"innodb_max_purge_lag": "1000"},
		}}
		if got := delaysWrites(v); got != c.want {
			t.Errorf("%s with %v: %v", c.version, c.lengths, got)
		}
	}
}
