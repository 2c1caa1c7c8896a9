// Package galera reads what a node of a Galera cluster (MariaDB, Percona XtraDB Cluster,
// Codership's MySQL) reports beyond a single server's counters. Everything comes from the tick's
// one SHOW GLOBAL STATUS.
//
// Means and maxima since the last FLUSH STATUS are left out, since they show nothing about the last
// second (wsrep_*_avg, _max, _min, wsrep_flow_control_paused, wsrep_apply_*, wsrep_commit_*,
// wsrep_cert_interval, wsrep_evs_repl_latency). So is wsrep_causal_reads, which counts failed
// certifications in Galera 26.4.23.
package galera

import (
	"context"
	"fmt"
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

var (
	// variables are the numeric variables.
	variables engine.Table

	_ = variables.Map(engine.ReplicationQueueTransactions, "wsrep_local_recv_queue")
)

var (
	pausedSeconds = variables.Convert(measure.NewCounter("galera_flow_control_paused_seconds_total",
		"Time that replication on this node was paused by flow control (wsrep_flow_control_paused_ns). Its rate is "+
			"the share of time paused. FLUSH STATUS does not reset it."), 1e9, "wsrep_flow_control_paused_ns")
	flowControlSent = variables.Map(measure.NewCounter("galera_flow_control_sent_total",
		"Pauses that this node requested (wsrep_flow_control_sent): the node that requests most is the slow one. "+
			"FLUSH STATUS resets it."), "wsrep_flow_control_sent")
	flowControlRecv = variables.Map(measure.NewCounter("galera_flow_control_received_total",
		"Pauses requested by any node, including this one (wsrep_flow_control_recv). FLUSH STATUS resets it."), "wsrep_flow_control_recv")
	// LastCommitted also shows how many transactions a cluster committed between two of its values.
	LastCommitted = variables.Map(measure.NewGauge("galera_last_committed",
		"Sequence number of the last transaction committed on this node (wsrep_last_committed). A gauge, since it "+
			"belongs to the cluster: it outlives restarts."), "wsrep_last_committed")
	clusterSize = variables.Map(measure.NewGauge("galera_cluster_size",
		"Nodes in this node's view of the cluster (wsrep_cluster_size). It is correct only 5 to 7 s after a node has "+
			"died."), "wsrep_cluster_size")
	configurationID = variables.Map(measure.NewGauge("galera_cluster_configuration_id",
		"Number of the membership change that this node has seen last (wsrep_cluster_conf_id). A node whose number "+
			"differs from the others' has an outdated view. Absent in a non-primary component."), "wsrep_cluster_conf_id")
	primary    = measure.NewGauge("galera_primary", "1 if the node is in the primary component (wsrep_cluster_status), else 0.")
	ready      = measure.NewGauge("galera_ready", "1 if the node accepts queries (wsrep_ready), else 0.")
	connected  = measure.NewGauge("galera_connected", "1 if the node is connected to the cluster's network (wsrep_connected), else 0.")
	localState = variables.Map(measure.NewGauge("galera_local_state",
		"The node's state: 0 initialized, 1 joining, 2 donor or desynced, 3 joined, 4 synced (wsrep_local_state)."), "wsrep_local_state")
	desyncCount = variables.Map(measure.NewGauge("galera_desync_count",
		"Reasons for which the node is desynced now: backup, FLUSH TABLES WITH READ LOCK, state transfer "+
			"(wsrep_desync_count)."), "wsrep_desync_count")
	receiveQueue = variables.Map(measure.NewGauge("galera_receive_queue",
		"Write sets received and waiting to be applied (wsrep_local_recv_queue). The node with the longest queue is "+
			"the slow one."), "wsrep_local_recv_queue")
	sendQueue    = variables.Map(measure.NewGauge("galera_send_queue", "Write sets waiting to be sent (wsrep_local_send_queue)."), "wsrep_local_send_queue")
	localCommits = variables.Map(measure.NewCounter("galera_local_commits_total",
		"Transactions of local clients that were committed (wsrep_local_commits). The sum over all nodes is the "+
			"number of the cluster's transactions."), "wsrep_local_commits")
	certFailures = variables.Map(measure.NewCounter("galera_certification_failures_total",
		"Transactions of local clients that failed certification (wsrep_local_cert_failures)."), "wsrep_local_cert_failures")
	bruteForceAborts = variables.Map(measure.NewCounter("galera_brute_force_aborts_total",
		"Transactions of local clients that an applier aborted (wsrep_local_bf_aborts)."), "wsrep_local_bf_aborts")
	_ = variables.Map(measure.NewCounter("galera_local_replays_total",
		"Transactions that were replayed after a lock conflict with an applier (wsrep_local_replays)."), "wsrep_local_replays")
	replicatedSets = variables.Map(measure.NewCounter("galera_replicated_writesets_total",
		"Write sets that this node sent to the others (wsrep_replicated)."), "wsrep_replicated")
	replicatedBytes = variables.Map(measure.NewCounter("galera_replicated_bytes_total",
		"Bytes of the write sets sent (wsrep_replicated_bytes)."), "wsrep_replicated_bytes")
	_ = variables.Map(measure.NewCounter("galera_received_writesets_total",
		"Write sets received from the others, and a few messages of the cluster itself (wsrep_received)."), "wsrep_received")
	_ = variables.Map(measure.NewCounter("galera_received_bytes_total",
		"Bytes of the write sets received (wsrep_received_bytes)."), "wsrep_received_bytes")
	_ = variables.Map(measure.NewGauge("galera_open_transactions",
		"Transactions known to the replication provider now (wsrep_open_transactions)."), "wsrep_open_transactions")
	distance = variables.Map(measure.NewGauge("galera_certification_dependency_distance",
		"Mean distance between write sets that could be applied in parallel (wsrep_cert_deps_distance): an upper "+
			"limit for useful applier threads. A mean since the start or the last FLUSH STATUS."), "wsrep_cert_deps_distance")
	_ = variables.Map(measure.NewGauge("galera_certification_index_entries",
		"Entries of the certification index (wsrep_cert_index_size)."), "wsrep_cert_index_size")
	_ = variables.Map(measure.NewGauge("galera_cached_down_to",
		"Oldest sequence number in the write set cache (wsrep_local_cached_downto): a node that stopped after it can "+
			"rejoin with an incremental transfer."), "wsrep_local_cached_downto")
	applierThreads = variables.Map(measure.NewGauge("galera_applier_threads",
		"Threads that apply write sets (wsrep_applier_thread_count; MariaDB)."), "wsrep_applier_thread_count")
	_ = variables.Map(measure.NewGauge("galera_cluster_weight",
		"Votes in this node's view of the cluster (wsrep_cluster_weight)."), "wsrep_cluster_weight")
	flowControlLimit = variables.Map(measure.NewGauge("galera_flow_control_limit",
		"Length of the receive queue at which the node requests a pause (wsrep_flow_control_interval_high; Percona "+
			"XtraDB Cluster)."), "wsrep_flow_control_interval_high")
)

// Counters that causes read.
var (
	writeSets     = measure.NewEvidence(measure.Server, measure.RateOf(replicatedSets))
	writeSetBytes = measure.NewEvidence(measure.Server, measure.RateOf(replicatedBytes))
)

// The measures of a node.
var (
	_ = engine.CommitRate.Prefer(measure.RateOf(localCommits)) // Com_commit is 0 under autocommit
	_ = engine.TransactionRate.Prefer(measure.RateOf(localCommits).Plus(engine.RollbacksTotal))
	_ = engine.FlowControl.Or(measure.ShareOf(pausedSeconds))
	_ = engine.CertificationFailures.Or(measure.RateOf(certFailures))
	_ = engine.ClusterSize.Or(measure.ValueOf(clusterSize))
	_ = engine.Primary.Or(measure.ValueOf(primary))

	_ = measure.New(measure.Measure{
		ID: "write_sets", Title: "Write sets committed", Note: "per second, of all nodes",
		Unit: measure.PerSecond, Scope: measure.Server, Summary: measure.Mean, Column: measure.EachServer,
		Supersedes: engine.QueryRate, // a statement sent to one node is executed on all nodes
		Rank:       500,
	}).Or(measure.RateOf(LastCommitted))
	_      = engine.Replicated.Or(measure.RateOf(LastCommitted))
	_      = engine.FlowControlSent.Or(measure.RateOf(flowControlSent))
	_      = engine.NewMeasure(510, "send_queue", "Send queue", "write sets waiting to be sent", measure.Count, measure.Max, measure.ValueOf(sendQueue))
	aborts = engine.NewMeasure(520, "brute_force_aborts", "Brute force aborts",
		"local transactions aborted by an applier per second", measure.PerSecond, measure.Increase,
		measure.RateOf(bruteForceAborts))
	ApplierThreads = engine.NewMeasure(940, "applier_threads", "Applier threads", "threads that apply write sets",
		measure.Count, measure.Last, measure.ValueOf(applierThreads))
	// UsefulAppliers is a mean since the server's start or FLUSH STATUS.
	UsefulAppliers = engine.NewMeasure(945, "cert_deps_distance", "Useful applier threads",
		"mean distance of write sets that can be applied in parallel: more appliers than this do not help",
		measure.Count, measure.Last, measure.ValueOf(distance))
	_ = engine.NewMeasure(950, "flow_control_limit", "Flow control limit",
		"length of the receive queue at which the node requests a pause", measure.Count, measure.Last,
		measure.ValueOf(flowControlLimit))
)

// states of a node that is not synced, by wsrep_local_state.
var states = []string{"not connected to its cluster", "joining", "donor or desynced", "joined but not synced"}

// Detail reads the wsrep_* variables. Any of them may be missing.
type Detail struct{}

// New returns the detail for one prober.
func New() mysql.Detail { return Detail{} }

// Needs implements mysql.Detail.
func (Detail) Needs() mysql.Needs {
	return mysql.Needs{
		Status: append(variables.Names(), "wsrep_cluster_status", "wsrep_ready", "wsrep_connected", "wsrep_cluster_state_uuid", "wsrep_provider_name",
			"wsrep_incoming_addresses", "wsrep_local_index", "wsrep_gcomm_uuid"),
		Settings:     append([]string{"wsrep_on", "wsrep_provider_options"}, settingNames...),
		ReadSettings: readSettings,
		Growing:      []*measure.Metric{LastCommitted},
	}
}

// Read implements mysql.Detail. Servers that could run Galera have some wsrep_* variables, too;
// only a server with a loaded provider has a state.
func (Detail) Read(_ context.Context, _ mysql.Querier, tick *mysql.Tick, out *engine.Status) error {
	status := tick.Status
	if _, loaded := status.Uint("wsrep_local_state"); !loaded {
		return nil
	}
	variables.Read(out, status.Number)
	for m, name := range map[*measure.Metric]string{ready: "wsrep_ready", connected: "wsrep_connected"} {
		if on, ok := status.Bool(name); ok {
			out.SetBool(m, on)
		}
	}

	inPrimary := strings.EqualFold(status["wsrep_cluster_status"], "Primary")
	if _, ok := status["wsrep_cluster_status"]; ok {
		out.SetBool(primary, inPrimary)
	}
	readMembership(status, &out.Membership)
	if out.Role == "" {
		out.Role = "member"
	}
	if state, ok := status.Uint("wsrep_local_state"); ok && state < uint64(len(states)) {
		out.NotReady = states[state]
	}
	if out.NotReady == "" && !inPrimary {
		out.NotReady = "not in the primary component"
	}
	if out.Position == nil {
		if p, ok := position(status); ok {
			out.Position = p
			// Outside the primary component a node receives no write sets and cannot see whether
			// others commit. For a node that is joining or desynced it is known how far it is
			// behind.
			out.Replicating = inPrimary
		}
	}
	return nil
}

// readMembership reads who the node is and which nodes it sees. The addresses are where clients reach the
// nodes, in the order of the nodes' indexes; an arbitrator has none.
func readMembership(status mysql.Values, out *engine.Membership) {
	if uuid := status["wsrep_cluster_state_uuid"]; strings.Trim(uuid, "0-") != "" {
		out.ClusterIDs = append(out.ClusterIDs, uuid)
	}
	if uuid := status["wsrep_gcomm_uuid"]; out.ServerID == "" && strings.Trim(uuid, "0-") != "" {
		out.ServerID = uuid
	}
	self, known := status.Uint("wsrep_local_index")
	i := uint64(0)
	for address := range strings.SplitSeq(status["wsrep_incoming_addresses"], ",") {
		if address = strings.TrimSpace(address); address != "" {
			out.Members = append(out.Members, engine.Member{Address: address, Self: known && i == self})
		}
		i++
	}
}

// position returns the node's position; false before the node has received a state from the
// cluster.
func position(status mysql.Values) (Position, bool) {
	uuid := status["wsrep_cluster_state_uuid"]
	seqno, ok := status.Uint("wsrep_last_committed")
	if !ok || seqno >= 1<<63 || strings.Trim(uuid, "0-") == "" {
		return Position{}, false
	}
	return Position{Cluster: uuid, Seqno: seqno}, true
}

// Position is the number of a write set in the history of one cluster. All nodes use the same
// numbers; changes of membership and DDL have numbers, too.
type Position struct {
	// Cluster is the history's UUID (wsrep_cluster_state_uuid).
	Cluster string
	Seqno   uint64
}

// Behind implements engine.Position.
func (p Position) Behind(other engine.Position) (uint64, bool) {
	o, ok := other.(Position)
	if !ok || o.Cluster != p.Cluster {
		return 0, false
	}
	return o.Seqno - min(p.Seqno, o.Seqno), true
}

// Scalar implements engine.Position.
func (p Position) Scalar() float64 { return float64(p.Seqno) }

// String returns the position as in grastate.dat and --wsrep_start_position.
func (p Position) String() string { return fmt.Sprintf("%s:%d", p.Cluster, p.Seqno) }
