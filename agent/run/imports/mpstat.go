package imports

import (
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
)

// mpstat reads lines of all cores or of one: "20:09:22     all   23.62    3.52 …".
func mpstat(s *sheet) func(string) {
	row, clock := fields{}, clock{}
	return func(line string) {
		row.values = strings.Fields(line)
		n := len(row.values)
		if n == 0 || row.values[0] == "Average:" || s.banner(line) {
			return
		}
		if i := slices.Index(row.values, "CPU"); i > 0 && strings.HasPrefix(row.values[n-1], "%") {
			if row.heads == nil { // the line has the time at which mpstat began
				s.begin(clock.read(strings.Join(row.values[:i], " ")))
			}
			row.heads = headsOf(row.values[i:])
			return
		}
		i := n - len(row.heads)
		if len(row.heads) == 0 || i < 1 {
			return
		}
		row.shift = i
		core := row.values[i]
		at := clock.read(strings.Join(row.values[:i], " "))
		if last := len(s.times) - 1; last <= 0 || !at.Equal(s.times[last]) || at.IsZero() && core == "all" {
			s.begin(at)
		}
		if core == "all" {
			s.setCPU(row.sum("%usr", "%user", "%nice", "%guest", "%gnice"), row.sum("%sys"), row.sum("%soft"), row.sum("%irq"),
				row.sum("%steal"), row.sum("%iowait"), row.sum("%idle"))
			return
		}
		if idle := row.number("%idle"); series.IsKnown(idle) && series.IsKnown(numberOf(core)) {
			s.raise(host.BusiestCoreShare, 1-(idle+row.sum("%iowait"))/100)
		}
	}
}
