package groupreplication

import (
	"github.com/benchwatch/benchwatch/agent/engine"
	"github.com/benchwatch/benchwatch/agent/measure"
)

var (
	memberInfo    = measure.NewGauge("group_replication_member_info", "1 for each member in this member's view, with its state and role as seen from here.", "member", "member_state", "member_role")
	memberState   = measure.NewGauge("group_replication_member_state", "The member's own state: 0 offline, 1 recovering, 2 online, 3 error, 4 unreachable.")
	primary       = measure.NewGauge("group_replication_primary", "1 if the member is a primary, else 0. Absent while it is not in a group.")
	groupSize     = measure.NewGauge("group_replication_group_size", "Members in this member's view, in any state. One that has died stays in it for some 20 s.")
	membersOnline = measure.NewGauge("group_replication_members_online", "Members that are online in this member's view.")
	viewNumber    = measure.NewGauge("group_replication_view_number", "Number of the group's last change of membership that this member has seen (VIEW_ID after the colon).")
	superReadOnly = measure.NewGauge("group_replication_super_read_only", "1 if the member accepts no writes from any client (super_read_only), else 0.")

	certificationQueue = measure.NewGauge("group_replication_certification_queue", "Transactions waiting for certification on this member (COUNT_TRANSACTIONS_IN_QUEUE).")
	applierQueue       = measure.NewGauge("group_replication_applier_queue", "Certified transactions of other members waiting to be applied on this one (COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE).")
	certified          = measure.NewCounter("group_replication_certified_transactions_total", "Transactions certified (COUNT_TRANSACTIONS_CHECKED). Starts over when the member joins.")
	conflicts          = measure.NewCounter("group_replication_conflicts_total", "Transactions that failed certification (COUNT_CONFLICTS_DETECTED).")
	certificationRows  = measure.NewGauge("group_replication_certification_rows", "Rows in the certification table (COUNT_TRANSACTIONS_ROWS_VALIDATING); swept about once a minute.")
	remoteApplied      = measure.NewCounter("group_replication_remote_applied_transactions_total", "Transactions of other members that this one has applied (COUNT_TRANSACTIONS_REMOTE_APPLIED).")
	localProposed      = measure.NewCounter("group_replication_local_proposed_transactions_total", "Transactions of this member's clients that were sent to the group (COUNT_TRANSACTIONS_LOCAL_PROPOSED).")
	localRolledBack    = measure.NewCounter("group_replication_local_rolled_back_transactions_total", "Transactions of this member's clients that the group refused (COUNT_TRANSACTIONS_LOCAL_ROLLBACK).")

	throttledTotal     = measure.NewCounter("group_replication_flow_control_throttled_transactions_total", "Transactions held back by flow control on this member (Gr_flow_control_throttle_count). Only with component_group_replication_flow_control_stats.")
	throttledNow       = measure.NewGauge("group_replication_flow_control_throttled_sessions", "Sessions held back by flow control now (Gr_flow_control_throttle_active_count).")
	throttledSeconds   = measure.NewCounter("group_replication_flow_control_throttled_seconds_total", "Time that sessions were held back by flow control, summed over the sessions (Gr_flow_control_throttle_time_sum). Divided by the clients, its rate is the share of time held back.")
	messagesSent       = measure.NewCounter("group_replication_messages_sent_total", "Data messages that this member sent to the group (Gr_data_messages_sent_count).")
	messageSeconds     = measure.NewCounter("group_replication_message_roundtrip_seconds_total", "Time from sending data messages until the group had agreed on them (Gr_data_messages_sent_roundtrip_time_sum).")
	consensusProposals = measure.NewCounter("group_replication_consensus_proposals_total", "Proposals of this member on which the group agreed (Gr_all_consensus_proposals_count).")
	consensusSeconds   = measure.NewCounter("group_replication_consensus_seconds_total", "Time until the group agreed on this member's proposals (Gr_all_consensus_time_sum).")
)

// The measures of a member.
var (
	// The sessions' times are added up, so they are divided by the sessions.
	_ = engine.FlowControl.Or(measure.ShareOf(throttledSeconds).Over(engine.ThreadsRunning))
	_ = engine.CertificationFailures.Or(measure.RateOf(conflicts))
	_ = engine.ClusterSize.Or(measure.ValueOf(groupSize))

	_ = measure.New(measure.Measure{
		ID: "certified_transactions", Title: "Transactions certified", Note: "per second, those of all members",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Mean, Rank: 500,
	}).Or(measure.RateOf(certified))
	_ = measure.New(measure.Measure{
		ID: "certification_queue", Title: "Certification queue", Note: "transactions waiting for certification",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Max, Rank: 510,
	}).Or(measure.ValueOf(certificationQueue))
	_ = measure.New(measure.Measure{
		ID: "consensus_latency", Title: "Consensus latency", Note: "mean time until the group agreed on a proposal",
		Unit: measure.Seconds, Scope: measure.Server, Summary: measure.Mean, Rank: 520,
	}).Or(measure.RateOf(consensusSeconds).Over(consensusProposals))
	_ = measure.New(measure.Measure{
		ID: "certification_rows", Title: "Certification table", Note: "rows, swept about once a minute",
		Unit: measure.Count, Scope: measure.Server, Summary: measure.Max, Rank: 530,
	}).Or(measure.ValueOf(certificationRows))
)

// columns of replication_group_member_stats.
var columns = engine.Table{
	{Metric: certificationQueue, Names: []string{"COUNT_TRANSACTIONS_IN_QUEUE"}},
	{Metric: applierQueue, Names: []string{"COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE"}},
	{Metric: engine.ReplicationQueueTransactions, Names: []string{"COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE"}},
	{Metric: certified, Names: []string{"COUNT_TRANSACTIONS_CHECKED"}},
	{Metric: conflicts, Names: []string{"COUNT_CONFLICTS_DETECTED"}},
	{Metric: certificationRows, Names: []string{"COUNT_TRANSACTIONS_ROWS_VALIDATING"}},
	{Metric: remoteApplied, Names: []string{"COUNT_TRANSACTIONS_REMOTE_APPLIED"}},
	{Metric: localProposed, Names: []string{"COUNT_TRANSACTIONS_LOCAL_PROPOSED"}},
	{Metric: localRolledBack, Names: []string{"COUNT_TRANSACTIONS_LOCAL_ROLLBACK"}},
}

// variables of SHOW GLOBAL STATUS, MySQL 8.1 and later. Times are microseconds.
// Those of flow control need a component.
var variables = engine.Table{
	{Metric: throttledTotal, Names: []string{"Gr_flow_control_throttle_count"}},
	{Metric: throttledNow, Names: []string{"Gr_flow_control_throttle_active_count"}},
	{Metric: throttledSeconds, Names: []string{"Gr_flow_control_throttle_time_sum"}, Divisor: 1e6},
	{Metric: messagesSent, Names: []string{"Gr_data_messages_sent_count"}},
	{Metric: messageSeconds, Names: []string{"Gr_data_messages_sent_roundtrip_time_sum"}, Divisor: 1e6},
	{Metric: consensusProposals, Names: []string{"Gr_all_consensus_proposals_count"}},
	{Metric: consensusSeconds, Names: []string{"Gr_all_consensus_time_sum"}, Divisor: 1e6},
}
