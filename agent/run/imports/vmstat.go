package imports

import (
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/host"
)

// vmstat reads lines such as " 1  0      0 551396 1342476 20227152    0    0   180 …".
func vmstat(s *sheet) func(string) {
	row := fields{}
	return func(line string) {
		row.values = strings.Fields(line)
		n := len(row.values)
		if slices.Contains(row.values, "us") && slices.Contains(row.values, "cs") {
			row.heads = headsOf(row.values)
			return
		}
		if len(row.heads) == 0 || n < len(row.heads)-1 || !series.IsKnown(numberOf(row.values[0])) {
			return
		}
		var at time.Time
		if n > 2 && strings.Contains(row.values[n-1], ":") {
			at, _ = time.Parse(time.DateTime, row.values[n-2]+" "+row.values[n-1])
		}
		s.begin(at)
		s.setCPU(row.sum("us", "gu"), row.sum("sy"), 0, 0, row.sum("st"), row.sum("wa"), row.sum("id"))
		s.set(host.Switches, "", row.sum("cs"))
		s.set(host.Swapped, "", row.sum("si", "so")/4) // KiB to pages of 4 KiB
		s.set(host.DiskRead, "all", row.sum("bi")*1024)
		s.set(host.DiskWritten, "all", row.sum("bo")*1024)
	}
}
