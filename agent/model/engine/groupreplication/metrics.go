package groupreplication

import (
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// variables of SHOW GLOBAL STATUS since MySQL 8.1. Times are microseconds. The variables of flow
// control need a component.
var variables engine.Table

var (
	// columns of replication_group_member_stats.
	columns engine.Table

	_ = columns.Map(engine.ReplicationQueueTransactions, "COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE")
)

var (
	memberInfo    = measure.NewGauge("group_replication_member_info", "1 for each member in this member's view, with its state and role as seen from here.", "member", "member_state", "member_role")
	memberState   = measure.NewGauge("group_replication_member_state", "The member's own state: 0 offline, 1 recovering, 2 online, 3 error, 4 unreachable.")
	primary       = measure.NewGauge("group_replication_primary", "1 if the member is a primary, else 0. Absent while it is not in a group.")
	groupSize     = measure.NewGauge("group_replication_group_size", "Members in this member's view, in any state. One that has died stays in it for some 20 s.")
	membersOnline = measure.NewGauge("group_replication_members_online", "Members that are online in this member's view.")
	viewNumber    = measure.NewGauge("group_replication_view_number", "Number of the group's last change of membership that this member has seen (VIEW_ID after the colon).")
	superReadOnly = measure.NewGauge("group_replication_super_read_only", "1 if the member accepts no writes from any client (super_read_only), else 0.")

	certificationQueue = columns.Map(measure.NewGauge("group_replication_certification_queue", "Transactions waiting for certification on this member (COUNT_TRANSACTIONS_IN_QUEUE)."), "COUNT_TRANSACTIONS_IN_QUEUE")
	applierQueue       = columns.Map(measure.NewGauge("group_replication_applier_queue", "Certified transactions of other members waiting to be applied on this one (COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE)."), "COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE")
	certified          = columns.Map(measure.NewCounter("group_replication_certified_transactions_total", "Transactions certified (COUNT_TRANSACTIONS_CHECKED). Starts over when the member joins."), "COUNT_TRANSACTIONS_CHECKED")
	conflicts          = columns.Map(measure.NewCounter("group_replication_conflicts_total", "Transactions that failed certification (COUNT_CONFLICTS_DETECTED)."), "COUNT_CONFLICTS_DETECTED")
	certificationRows  = columns.Map(measure.NewGauge("group_replication_certification_rows", "Rows in the certification table (COUNT_TRANSACTIONS_ROWS_VALIDATING); swept about once a minute."), "COUNT_TRANSACTIONS_ROWS_VALIDATING")
	_                  = columns.Map(measure.NewCounter("group_replication_remote_applied_transactions_total", "Transactions of other members that this one has applied (COUNT_TRANSACTIONS_REMOTE_APPLIED)."), "COUNT_TRANSACTIONS_REMOTE_APPLIED")
	_                  = columns.Map(measure.NewCounter("group_replication_local_proposed_transactions_total", "Transactions of this member's clients that were sent to the group (COUNT_TRANSACTIONS_LOCAL_PROPOSED)."), "COUNT_TRANSACTIONS_LOCAL_PROPOSED")
	_                  = columns.Map(measure.NewCounter("group_replication_local_rolled_back_transactions_total", "Transactions of this member's clients that the group refused (COUNT_TRANSACTIONS_LOCAL_ROLLBACK)."), "COUNT_TRANSACTIONS_LOCAL_ROLLBACK")

	_                  = variables.Map(measure.NewCounter("group_replication_flow_control_throttled_transactions_total", "Transactions held back by flow control on this member (Gr_flow_control_throttle_count). Only with component_group_replication_flow_control_stats (Enterprise edition from MySQL 9.1, all editions from 9.7)."), "Gr_flow_control_throttle_count")
	_                  = variables.Map(measure.NewGauge("group_replication_flow_control_throttled_sessions", "Sessions held back by flow control now (Gr_flow_control_throttle_active_count)."), "Gr_flow_control_throttle_active_count")
	throttledSeconds   = variables.Convert(measure.NewCounter("group_replication_flow_control_throttled_seconds_total", "Time that sessions were held back by flow control, summed over the sessions (Gr_flow_control_throttle_time_sum). Divided by the clients, its rate is the share of time held back."), 1e6, "Gr_flow_control_throttle_time_sum")
	_                  = variables.Map(measure.NewCounter("group_replication_messages_sent_total", "Data messages that this member sent to the group (Gr_data_messages_sent_count)."), "Gr_data_messages_sent_count")
	_                  = variables.Convert(measure.NewCounter("group_replication_message_roundtrip_seconds_total", "Time from sending data messages until the group had agreed on them (Gr_data_messages_sent_roundtrip_time_sum)."), 1e6, "Gr_data_messages_sent_roundtrip_time_sum")
	consensusProposals = variables.Map(measure.NewCounter("group_replication_consensus_proposals_total", "Proposals of this member on which the group agreed (Gr_all_consensus_proposals_count)."), "Gr_all_consensus_proposals_count")
	consensusSeconds   = variables.Convert(measure.NewCounter("group_replication_consensus_seconds_total", "Time until the group agreed on this member's proposals (Gr_all_consensus_time_sum)."), 1e6, "Gr_all_consensus_time_sum")
)

// The measures of a member.
var (
	// The time is the sum over sessions, so it is divided by the number of sessions.
	_ = engine.FlowControl.Or(measure.ShareOf(throttledSeconds).Over(engine.ThreadsRunning))
	_ = engine.CertificationFailures.Or(measure.RateOf(conflicts))
	_ = engine.ClusterSize.Or(measure.ValueOf(groupSize))

	_ = engine.NewMeasure(500, "certified_transactions", "Transactions certified", "per second, those of all members", measure.PerSecond, measure.Mean,
		measure.RateOf(certified))
	_ = engine.NewMeasure(510, "certification_queue", "Certification queue", "transactions waiting for certification", measure.Count, measure.Max,
		measure.ValueOf(certificationQueue))
	_ = engine.NewMeasure(520, "consensus_latency", "Consensus latency", "mean time until the group agreed on a proposal", measure.Seconds, measure.Mean,
		measure.RateOf(consensusSeconds).Over(consensusProposals))
	_ = engine.NewMeasure(530, "certification_rows", "Certification table", "rows, swept about once a minute", measure.Count, measure.Max,
		measure.ValueOf(certificationRows))
)
