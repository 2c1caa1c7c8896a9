package replication

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

var _ = cause.Declare(cause.Explanation{
	Engine: mysql.Name,
	Causes: []cause.Cause{{
		Name: "acknowledgements of a semi-synchronous replica", Of: []cause.Limit{cause.Replication, cause.Commit},
		Reads: "the states of the sessions",
		Find:  acknowledgements, Test: "repeat with rpl_semi_sync_master_enabled=OFF (rpl_semi_sync_source_enabled), or with a nearer or faster replica",
	}},
})

// acknowledgements finds commits that waited for a replica's acknowledgement.
func acknowledgements(v *cause.View) (cause.Found, bool) {
	const state, event = "waiting for semi-sync", "synch/cond/semisync/"
	sessions := v.SessionsIn(state) + v.SessionsIn(event)
	if !(sessions > 0) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: v.InState(state) + v.InState(event), Evidence: fmt.Sprintf(
		"%s of %s clients waited on average until a replica of %s had received their commit: %s ms for each "+
			"transaction",
		table.Digits.Format(sessions), table.Rounded(v.Threads), v.Target, table.Milliseconds.Format(sessions/v.Throughput))}, true
}
