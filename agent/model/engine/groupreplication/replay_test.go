package groupreplication

import (
	"testing"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/enginetest"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql/mysqltest"
)

const group = "aaaaaaaa-bbbb-cccc-dddd-000000000001"

// play samples the three members of a recording. The frame of Unix second t is
// frames[t-first].
func play(t *testing.T, scenario string) (frames []engine.Frame, first int64) {
	t.Helper()
	var nodes []mysqltest.Node
	for _, name := range []string{"g1", "g2", "g3"} {
		nodes = append(nodes, mysqltest.Node{
			Name: name, Details: []mysql.Detail{New()},
			Variables: mysql.Values{"version": "9.7.4", "group_replication_group_name": group},
			Table: func(statement string) string {
				return map[string]string{askSelf: "gtid", askMembers: "group_members", askStats: "group_member_stats"}[statement]
			},
		})
	}
	return mysqltest.Play(t, "testdata/"+scenario, nodes)
}

func member(frames []engine.Frame, first, second int64, n int) *engine.Sample {
	return &frames[second-first].Samples[n-1]
}

// g3 has 8 % of a core from 616.1 to 636.2.
func TestSlowApplier(t *testing.T) {
	frames, first := play(t, "slow-applier")
	g3 := member(frames, first, 1795226631, 3)
	if g3.LagTransactions.Value != 56815-55426 || enginetest.Value(t, g3, applierQueue) != 1445 {
		t.Errorf("behind by %v, queue %v", g3.LagTransactions.Value, enginetest.Value(t, g3, applierQueue))
	}
	if g3.LagSeconds != g3.Status.LagSeconds || g3.LagSeconds.Value < 14 || g3.LagSeconds.Value > 15 {
		t.Errorf("lag %v s", g3.LagSeconds.Value)
	}
	// The primary's row about g3 has old values; the primary's own queue is empty.
	if g1 := member(frames, first, 1795226631, 1); enginetest.Value(t, g1, applierQueue) != 0 || g1.Status.Role != "primary" || enginetest.Value(t, g1, primary) != 1 {
		t.Errorf("primary: %+v", g1.Status)
	}
	// Long after the load: no member is behind, and the last lag is not kept.
	g3 = member(frames, first, 1795226655, 3)
	if g3.LagTransactions.Value != 0 || g3.LagSeconds.Value != 0 || g3.Status.LagSeconds.Known {
		t.Errorf("idle member: %v transactions, %v s", g3.LagTransactions.Value, g3.LagSeconds.Value)
	}
}

// g3 is killed at 677.1, started at 687.1, told to join at 689.2, joined at 715.4.
func TestKilledAndRejoined(t *testing.T) {
	frames, first := play(t, "kill-rejoin")
	if s := member(frames, first, 1795226680, 3); s.Up() {
		t.Error("g3 is up after its death")
	}
	// The others still count it as a member for a while.
	g1 := member(frames, first, 1795226680, 1)
	if enginetest.Value(t, g1, groupSize) != 3 || enginetest.Value(t, g1, membersOnline) != 3 {
		t.Error("the view has changed too early")
	}
	if g1 = member(frames, first, 1795226684, 1); enginetest.Value(t, g1, memberInfo, "127.0.0.1:3343", "unreachable", "secondary") != 1 {
		t.Error("the dead member is not unreachable")
	}
	// Up again but not in the group: alone in its view, no role, no lag.
	g3 := member(frames, first, 1795226690, 3)
	if enginetest.Value(t, g3, memberState) != 0 || enginetest.Value(t, g3, groupSize) != 1 || g3.Status.Replicating || g3.LagTransactions.Known || g3.Restarts != 1 {
		t.Errorf("offline member: %+v", g3)
	}
	if _, ok := g3.Status.Get(primary); ok {
		t.Error("role of a member that is in no group")
	}
	// Recovering: behind by a known number.
	g3 = member(frames, first, 1795226717, 3)
	if enginetest.Value(t, g3, memberState) != 1 || g3.LagTransactions.Value != 71714-69216 || enginetest.Value(t, g3, viewNumber) != 13 {
		t.Errorf("recovering member: %+v", g3)
	}
	g3 = member(frames, first, 1795226744, 3)
	if enginetest.Value(t, g3, memberState) != 2 || g3.LagTransactions.Value != 0 {
		t.Errorf("online member: %+v", g3)
	}
}

// A recorded member has a value for every measure of Group Replication. The counters of consensus
// and flow control come from MySQL 9.
func TestMeasures(t *testing.T) {
	frames, first := play(t, "slow-applier")
	previous, current := member(frames, first, 1795226630, 3), member(frames, first, 1795226631, 3)
	enginetest.Measures(t, previous.Status, current.Status, "certified_transactions", "certification_queue", "certification_rows",
		"certification_failures", "replication_queue", "cluster_size")

	statuses := make([]*engine.Status, 2)
	for i, n := range []string{"100", "250"} {
		statuses[i] = &engine.Status{}
		variables.Read(statuses[i], mysql.Values{
			"Gr_flow_control_throttle_time_sum": n + "000", "Gr_all_consensus_time_sum": n + "000", "Gr_all_consensus_proposals_count": n,
		}.Number)
		statuses[i].Set(engine.ThreadsRunning, 3)
	}
	enginetest.Measures(t, statuses[0], statuses[1], "flow_control", "consensus_latency")
}
