package groupreplication

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

var _ = cause.Declare(cause.Explanation{
	Engine: mysql.Name,
	Causes: []cause.Cause{{
		Name: "a full applier queue of a group's member", Of: []cause.Limit{cause.FlowControl, cause.Replication, cause.Commit},
		Reads: "transactions that wait to be applied on each member, `group_replication_flow_control_applier_threshold`",
		Find:  fullQueue, Test: "look at CPU, disks and appliers (replica_parallel_workers) of that member, or raise group_replication_flow_control_applier_threshold",
	}},
})

// fullQueue finds a member whose queue reached the threshold from which on the group holds writes back. Only members of a
// group have that setting.
func fullQueue(v *cause.View) (cause.Found, bool) {
	most, threshold := v.Max(engine.ReplicationQueue), v.Number("group_replication_flow_control_applier_threshold")
	if v.Setting("group_replication_flow_control_mode") == "DISABLED" || !(threshold > 0) || !(most >= threshold) {
		return cause.Found{}, false
	}
	return cause.Found{Of: v.Target, Part: 1, Evidence: fmt.Sprintf("%s had up to %s transactions to apply: from %s on the group holds writes back (group_replication_flow_control_applier_threshold)",
		v.Target, table.Rounded(most), table.Rounded(threshold))}, true
}
