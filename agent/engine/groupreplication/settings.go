package groupreplication

import (
	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/engine/mysql"
)

// settingNames are the variables that matter.
var settingNames = []string{
	"group_replication_single_primary_mode", "group_replication_consistency", "group_replication_paxos_single_leader",
	"group_replication_flow_control_mode", "group_replication_flow_control_applier_threshold", "group_replication_flow_control_certifier_threshold",
	"group_replication_flow_control_period", "group_replication_flow_control_min_quota", "group_replication_flow_control_max_quota",
	"group_replication_flow_control_min_recovery_quota", "group_replication_flow_control_member_quota_percent",
	"group_replication_flow_control_hold_percent", "group_replication_flow_control_release_percent",
	"group_replication_transaction_size_limit", "group_replication_compression_threshold", "group_replication_communication_max_message_size",
	"group_replication_communication_stack", "group_replication_poll_spin_loops",
}

// SettingNames implements mysql.Configured.
func (*Detail) SettingNames() []string {
	return append([]string{"group_replication_group_name"}, settingNames...)
}

// ReadSettings implements mysql.Configured.
func (*Detail) ReadSettings(server *mysql.Server, variables mysql.Values, out engine.Settings) {
	if variables["group_replication_group_name"] != "" && !server.MariaDB() {
		mysql.Copy(settingNames, variables, out)
	}
}
