// Package groupreplication reads what a member of a MySQL group (Group Replication, InnoDB Cluster)
// reports beyond a single server's counters.
//
// A member's rows about the other members are their last broadcasts: up to a second old, and frozen
// when a member dies. Queues and counts are therefore taken only from the member's own row. Of the
// other members only the state is read, as this member sees it.
package groupreplication

import (
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/gtid"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/replication"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// The statements of a tick, except the one for the applier's workers.
const (
	askSelf    = "SELECT @@GLOBAL.gtid_executed AS gtid_executed, @@GLOBAL.server_uuid AS server_uuid, @@GLOBAL.super_read_only AS super_read_only"
	askMembers = "SELECT * FROM performance_schema.replication_group_members"
	askStats   = "SELECT * FROM performance_schema.replication_group_member_stats WHERE MEMBER_ID = @@GLOBAL.server_uuid"
)

// groupName is the variable with the group's UUID.
const groupName = "group_replication_group_name"

// applierChannel is the channel on which a member applies certified transactions.
const applierChannel = "group_replication_applier"

// states of a member as numbers, so that they can be charted and compared.
var states = map[string]float64{"OFFLINE": 0, "RECOVERING": 1, "ONLINE": 2, "ERROR": 3, "UNREACHABLE": 4}

// settingNames are the relevant variables.
var settingNames = []string{
	"group_replication_single_primary_mode", "group_replication_consistency", "group_replication_paxos_single_leader",
	"group_replication_flow_control_mode", "group_replication_flow_control_applier_threshold", "group_replication_flow_control_certifier_threshold",
	"group_replication_flow_control_period", "group_replication_flow_control_min_quota", "group_replication_flow_control_max_quota",
	"group_replication_flow_control_min_recovery_quota", "group_replication_flow_control_member_quota_percent",
	"group_replication_flow_control_hold_percent", "group_replication_flow_control_release_percent",
	"group_replication_transaction_size_limit", "group_replication_compression_threshold", "group_replication_communication_max_message_size",
	"group_replication_communication_stack", "group_replication_poll_spin_loops",
}

// Detail reads a member's tables.
type Detail struct {
	applier replication.Applier
}

// New returns the detail for one prober.
func New() mysql.Detail { return &Detail{} }

// Needs implements mysql.Detail.
func (*Detail) Needs() mysql.Needs {
	return mysql.Needs{
		Status:    append(variables.Names(), "group_replication_primary_member"),
		Variables: []string{groupName},
		Settings:  append([]string{groupName}, settingNames...),
		ReadSettings: func(server *mysql.Server, variables mysql.Values, out engine.Settings) {
			if variables[groupName] != "" && !server.MariaDB() {
				mysql.Copy(settingNames, variables, out)
			}
		},
	}
}

// Read implements mysql.Detail. A server without the plugin has no group name.
func (d *Detail) Read(ctx context.Context, q mysql.Querier, tick *mysql.Tick, out *engine.Status) error {
	group := strings.ToLower(tick.Server.Variables[groupName])
	if group == "" || tick.Server.MariaDB() {
		return nil
	}
	self, err := q.Rows(ctx, askSelf)
	if err != nil || len(self) == 0 {
		return err
	}
	uuid := self[0].Text("server_uuid")
	if ro, ok := self[0].Number("super_read_only"); ok {
		out.Set(superReadOnly, ro)
	}
	variables.Read(out, tick.Status.Number)

	members, err := q.Rows(ctx, askMembers)
	if err := mysql.Optional(err, out,
		"SELECT ON performance_schema.replication_group_members: which members the group has, their state and role"); err != nil {
		return err
	}
	out.ClusterIDs = append(out.ClusterIDs, group)
	state := readMembers(members, uuid, tick.Status["group_replication_primary_member"], out)
	if out.Role == "" {
		out.Role = "member"
	}
	if err := readStats(ctx, q, uuid, out); err != nil {
		return err
	}
	readPosition(self[0], group, uuid, state, out)
	if state != "ONLINE" && state != "RECOVERING" {
		return nil
	}
	return d.applier.Read(ctx, q, applierChannel, out)
}

// readMembers sets the states of all members as this member sees them, and returns its own state.
func readMembers(members []mysql.Row, uuid, primaryUUID string, out *engine.Status) (state string) {
	var online float64
	for _, row := range members {
		id, its, role := row.Text("MEMBER_ID"), row.Text("MEMBER_STATE"), row.Text("MEMBER_ROLE")
		if !row.Has("MEMBER_ROLE") && primaryUUID != "" { // MySQL 5.7
			role = "SECONDARY"
			if strings.EqualFold(id, primaryUUID) {
				role = "PRIMARY"
			}
		}
		if its == "ONLINE" {
			online++
		}
		address := net.JoinHostPort(row.Text("MEMBER_HOST"), row.Text("MEMBER_PORT"))
		out.Set(memberInfo, 1, address, strings.ToLower(its), strings.ToLower(role))
		if id != "" { // a server that never joined lists itself without an id
			out.Members = append(out.Members, engine.Member{Address: address, ID: id, State: its, Self: strings.EqualFold(id, uuid)})
		}
		if !strings.EqualFold(id, uuid) {
			continue
		}
		state = its
		if n, ok := states[its]; ok {
			out.Set(memberState, n)
		}
		if role != "" {
			out.SetBool(primary, role == "PRIMARY")
			if out.Role == "" {
				out.Role = strings.ToLower(role)
			}
		}
	}
	if len(members) > 0 {
		out.Set(groupSize, float64(len(members)))
		out.Set(membersOnline, online)
	}
	return state
}

// readStats reads the queues and counts in this member's own row.
func readStats(ctx context.Context, q mysql.Querier, uuid string, out *engine.Status) error {
	rows, err := q.Rows(ctx, askStats)
	if err != nil {
		return mysql.Optional(err, out,
			"SELECT ON performance_schema.replication_group_member_stats: queues and certification of the group")
	}
	for _, row := range rows {
		if !strings.EqualFold(row.Text("MEMBER_ID"), uuid) {
			continue
		}
		columns.Read(out, func(name string) (float64, bool) { return row.Number(name) })
		// VIEW_ID is a number created at bootstrap, followed by the number of changes since.
		if _, count, ok := strings.Cut(row.Text("VIEW_ID"), ":"); ok {
			if n, err := strconv.ParseUint(count, 10, 63); err == nil {
				out.Set(viewNumber, float64(n))
			}
		}
	}
	return nil
}

// readPosition counts only the group's transactions. A member's own transactions are not missing on
// other members (accounts created with the binary log on before it joined).
func readPosition(self mysql.Row, group, uuid, state string, out *engine.Status) {
	text, ok := self.Lookup("gtid_executed")
	if !ok || out.Position != nil {
		return
	}
	set, err := gtid.ParseSet(text)
	if err != nil {
		return // notation of a later version
	}
	out.Position = &gtid.Position{
		Kind: gtid.MySQL, Executed: set.Only(group), Own: set.Without(group),
		Server: uuid, Text: text,
	}
	// A member that has left the group, or has not joined yet, receives nothing. If the state is
	// unknown, the position is compared nevertheless.
	out.Replicating = state == "" || state == "ONLINE" || state == "RECOVERING"
}

// variables of SHOW GLOBAL STATUS since MySQL 8.1. Times are microseconds. The variables of flow
// control need a component.
var variables engine.Table

var (
	// columns of replication_group_member_stats.
	columns engine.Table

	_ = columns.Map(engine.ReplicationQueueTransactions, "COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE")
)

var (
	memberInfo = measure.NewGauge("group_replication_member_info",
		"1 for each member in this member's view, with its state and role as seen from here.", "member", "member_state", "member_role")
	memberState = measure.NewGauge("group_replication_member_state", "The member's own state: 0 offline, 1 recovering, 2 online, 3 error, 4 unreachable.")
	primary     = measure.NewGauge("group_replication_primary", "1 if the member is a primary, else 0. Absent while it is not in a group.")
	groupSize   = measure.NewGauge("group_replication_group_size",
		"Members in this member's view, in any state. A member that has died remains in it for about 20 s.")
	membersOnline = measure.NewGauge("group_replication_members_online", "Members that are online in this member's view.")
	viewNumber    = measure.NewGauge("group_replication_view_number",
		"Number of the group's last change of membership that this member has seen (VIEW_ID after the colon).")
	superReadOnly = measure.NewGauge("group_replication_super_read_only", "1 if the member accepts no writes from any client (super_read_only), else 0.")

	certificationQueue = columns.Map(measure.NewGauge("group_replication_certification_queue",
		"Transactions waiting for certification on this member (COUNT_TRANSACTIONS_IN_QUEUE)."), "COUNT_TRANSACTIONS_IN_QUEUE")
	applierQueue = columns.Map(measure.NewGauge("group_replication_applier_queue",
		"Certified transactions of other members waiting to be applied on this member "+
			"(COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE)."), "COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE")
	certified = columns.Map(measure.NewCounter("group_replication_certified_transactions_total",
		"Transactions certified (COUNT_TRANSACTIONS_CHECKED). Starts over when the member joins."), "COUNT_TRANSACTIONS_CHECKED")
	conflicts = columns.Map(measure.NewCounter("group_replication_conflicts_total",
		"Transactions that failed certification (COUNT_CONFLICTS_DETECTED)."), "COUNT_CONFLICTS_DETECTED")
	certificationRows = columns.Map(measure.NewGauge("group_replication_certification_rows",
		"Rows in the certification table (COUNT_TRANSACTIONS_ROWS_VALIDATING); swept about once a minute."), "COUNT_TRANSACTIONS_ROWS_VALIDATING")
	_ = columns.Map(measure.NewCounter("group_replication_remote_applied_transactions_total",
		"Transactions of other members that this member has applied (COUNT_TRANSACTIONS_REMOTE_APPLIED)."), "COUNT_TRANSACTIONS_REMOTE_APPLIED")
	_ = columns.Map(measure.NewCounter("group_replication_local_proposed_transactions_total",
		"Transactions of this member's clients that were sent to the group (COUNT_TRANSACTIONS_LOCAL_PROPOSED)."), "COUNT_TRANSACTIONS_LOCAL_PROPOSED")
	_ = columns.Map(measure.NewCounter("group_replication_local_rolled_back_transactions_total",
		"Transactions of this member's clients that the group refused (COUNT_TRANSACTIONS_LOCAL_ROLLBACK)."), "COUNT_TRANSACTIONS_LOCAL_ROLLBACK")

	_ = variables.Map(measure.NewCounter("group_replication_flow_control_throttled_transactions_total",
		"Transactions held back by flow control on this member (Gr_flow_control_throttle_count). Only with "+
			"component_group_replication_flow_control_stats (Enterprise edition from MySQL 9.1, all editions from 9.7)."), "Gr_flow_control_throttle_count")
	throttledSessions = variables.Map(measure.NewGauge("group_replication_flow_control_throttled_sessions",
		"Sessions held back by flow control now (Gr_flow_control_throttle_active_count)."), "Gr_flow_control_throttle_active_count")
	throttledSeconds = variables.Convert(measure.NewCounter("group_replication_flow_control_throttled_seconds_total",
		"Time that sessions were held back by flow control, summed over the sessions "+
			"(Gr_flow_control_throttle_time_sum). Divided by the clients, its rate is the share of time held back."), 1e6, "Gr_flow_control_throttle_time_sum")
	_ = variables.Map(measure.NewCounter("group_replication_messages_sent_total",
		"Data messages that this member sent to the group (Gr_data_messages_sent_count)."), "Gr_data_messages_sent_count")
	_ = variables.Convert(measure.NewCounter("group_replication_message_roundtrip_seconds_total",
		"Time from sending data messages until the group had agreed on them "+
			"(Gr_data_messages_sent_roundtrip_time_sum)."), 1e6, "Gr_data_messages_sent_roundtrip_time_sum")
	consensusProposals = variables.Map(measure.NewCounter("group_replication_consensus_proposals_total",
		"Proposals of this member on which the group agreed (Gr_all_consensus_proposals_count)."), "Gr_all_consensus_proposals_count")
	consensusSeconds = variables.Convert(measure.NewCounter("group_replication_consensus_seconds_total",
		"Time until the group agreed on this member's proposals (Gr_all_consensus_time_sum)."), 1e6, "Gr_all_consensus_time_sum")
)

// The measures of a member.
var (
	// The time is the sum over sessions, so it is divided by the number of sessions.
	_ = engine.FlowControl.Or(measure.ShareOf(throttledSeconds).Over(engine.ThreadsRunning))
	_ = engine.CertificationFailures.Or(measure.RateOf(conflicts))
	_ = engine.ClusterSize.Or(measure.ValueOf(groupSize))

	_ = engine.NewMeasure(500, "certified_transactions", "Transactions certified", "per second, of all members", measure.PerSecond, measure.Mean,
		measure.RateOf(certified))
	_ = engine.NewMeasure(510, "certification_queue", "Certification queue", "transactions waiting for certification", measure.Count, measure.Max,
		measure.ValueOf(certificationQueue))
	_ = engine.NewMeasure(520, "consensus_latency", "Consensus latency", "mean time until the group agreed on a proposal", measure.Seconds, measure.Mean,
		measure.RateOf(consensusSeconds).Over(consensusProposals))
	_ = engine.NewMeasure(530, "certification_rows", "Certification table", "rows, swept about once a minute", measure.Count, measure.Max,
		measure.ValueOf(certificationRows))
)
