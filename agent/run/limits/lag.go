package limits

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

// longLag is the lag in seconds above which a replica can't keep up with the run's rate.
const longLag = 5

// behind describes the replicas that did not keep up.
func behind(servers []ServerEvidence) (all []string) {
	for i := range servers {
		if s := &servers[i]; s.LagSeconds >= longLag {
			all = append(all, fmt.Sprintf("%s was up to %s s behind: it can't keep up with this throughput, though it does "+
				"not slow the clients. To test it: lower the rate until the lag stops growing, or raise its applier threads "+
				"if it can have several",
				s.Name, table.Rounded(s.LagSeconds)))
		}
	}
	return all
}
