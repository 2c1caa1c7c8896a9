package limits

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// ofServers are limits to which another load on the servers contributes, so it gets a share of their findings.
var ofServers = []cause.Limit{
	cause.ServerCPU, cause.SharedCPU, cause.ProcessCPU, cause.ServerCore, cause.RowLocks, cause.Locks, cause.UserLocks,
	cause.ThreadPool, cause.Latches, cause.FlowControl, cause.Replication, cause.Commit, cause.Disk, cause.Pool, cause.Network,
}

// addOtherLoad adds the other load on the servers, and takes its share from the findings to which it contributes.
func (f *finder) addOtherLoad() {
	if f.e.OtherLoad == "" {
		return
	}
	share, foreign := 0.0, cause.OrZero(f.e.ForeignShare)
	for i := range f.v.Findings {
		if one := &f.v.Findings[i]; slices.Contains(ofServers, one.Limit) {
			share += foreign * one.Share
			one.Share = math.Round(one.Share*(1-foreign)*1000) / 1000
			one.Evidence += fmt.Sprintf("; %s of that is due to the other load", table.Share(foreign))
		}
	}
	share = max(share, LeastShare)
	f.add(cause.OtherLoad, finding(share, "repeat while nothing else uses the servers",
		"%s", f.e.OtherLoad))
}
