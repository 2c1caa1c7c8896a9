package imports

import (
	"math"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// dstatColumns are the columns of dstat besides CPU time.
var dstatColumns = []struct {
	name   string
	metric *measure.Metric
	device string
}{
	{"csw", host.Switches, ""},
	{"read", host.DiskRead, "all"}, {"writ", host.DiskWritten, "all"},
	{"recv", host.NetReceived, "all"}, {"send", host.NetSent, "all"},
}

// dstat reads lines such as " 67  11  20   0   1| 505k 6797k|   0     0 |…". The headings of the
// columns are below their groups.
func dstat(s *sheet) func(string) {
	var groups [][]string // the column headings
	clock := clock{}
	return func(line string) {
		parts := strings.Split(line, "|")
		if strings.Contains(line, "usr") && strings.Contains(line, "idl") {
			groups = groups[:0]
			for _, part := range parts {
				groups = append(groups, strings.Fields(part))
			}
			return
		}
		if len(groups) == 0 || len(parts) != len(groups) {
			return
		}
		var at time.Time
		row := map[string]float64{}
		for i, heads := range groups {
			values := strings.Fields(parts[i])
			if len(heads) == 1 && heads[0] == "time" {
				at = clock.read(strings.Join(values, " "))
				continue
			}
			if len(values) != len(heads) {
				continue // pcp's dstat begins with an empty row
			}
			for j, head := range heads {
				if x := shortNumber(values[j]); series.IsKnown(x) {
					row[head] = x
				}
			}
		}
		s.begin(at)
		s.setCPU(row["usr"], row["sys"], row["siq"], row["hiq"], row["stl"], row["wai"], row["idl"])
		for _, column := range dstatColumns {
			if x, ok := row[column.name]; ok {
				s.set(column.metric, column.device, x)
			}
		}
	}
}

// shortNumber returns a number as dstat prints it: 79M, 17.9G, 505k, 2817B.
func shortNumber(text string) float64 {
	factor := 1.0
	if i := strings.IndexByte("BkMGT", text[len(text)-1]); i >= 0 {
		factor, text = math.Pow(1024, float64(i)), text[:len(text)-1]
	}
	return numberOf(text) * factor
}
