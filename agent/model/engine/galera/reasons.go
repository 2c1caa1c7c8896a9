package galera

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

var _ = engine.DeclareOnset(engine.Onset{Metric: pausedSeconds, PerSecond: true, High: 0.3, Text: "flow control began on %s"})

// Reasons for stalls of a cluster.
var _ = evidence.Declare(evidence.Rules{
	Engine: mysql.Name,
	Reasons: []evidence.Reason{
		{Name: "flow control", Reads: "`wsrep_flow_control_paused_ns`, `wsrep_flow_control_sent` and `wsrep_local_recv_queue` of all nodes", Find: pausedStall},
		{Name: "state transfer", Reads: "`wsrep_local_state` of all nodes, and the write sets that they did not apply", Find: transferStall},
		{Name: "not in the primary component", Reads: "`wsrep_cluster_status`", Find: partedStall},
	},
})

// pausedStall finds that flow control paused replication, and which node asked for that.
func pausedStall(s *evidence.Scene) (evidence.Found, bool) {
	paused := s.Increase("wsrep_flow_control_paused_ns") / 1e9
	if !(paused >= 0.5) {
		return evidence.Found{}, false
	}
	text := fmt.Sprintf("flow control paused writes on %s for %s of the time", s.Target, table.Share(min(1, paused)))
	slow, longest := "", 0.0
	for _, node := range s.All {
		if node.Engine != s.Engine {
			continue
		}
		if len(node.Answers) == 0 && node.Failed > 0 { // it can't be asked for its queue
			slow = node.Target + " did not answer"
			break
		}
		if _, queue := node.Worst(func(a *evidence.Answer) float64 { return a.Number("wsrep_local_recv_queue") }); queue > longest {
			longest, slow = queue, fmt.Sprintf("%s had up to %s write sets to apply", node.Target, table.Rounded(queue))
			if sent := node.Increase("wsrep_flow_control_sent"); sent > 0 {
				slow += " and asked for the pauses"
			}
		}
	}
	if slow != "" {
		text += "; " + slow
	}
	return evidence.Found{Share: min(1, paused) * 0.95, Text: text}, true
}

// partedStall finds a node that lost the primary component.
func partedStall(s *evidence.Scene) (evidence.Found, bool) {
	for _, a := range s.Answers {
		status, ok := a.Texts["wsrep_cluster_status"]
		if ok && status != "Primary" && status != "Disconnected" {
			return evidence.Found{Share: 0.9, Text: fmt.Sprintf("%s was not in the primary component (wsrep_cluster_status = %s, %s nodes)",
				s.Target, table.Plain(status), table.Rounded(a.Number("wsrep_cluster_size")))}, true
		}
	}
	return evidence.Found{}, false
}

// transferStall finds a node that sends its data to another one, and applies nothing meanwhile.
func transferStall(s *evidence.Scene) (evidence.Found, bool) {
	for _, node := range s.All {
		if node.Engine != s.Engine || !node.Most(func(a *evidence.Answer) bool { return a.Values["wsrep_local_state"] == donor }) {
			continue
		}
		for _, other := range s.All {
			if other.Engine == s.Engine && other.Most(func(a *evidence.Answer) bool { return a.Values["wsrep_local_state"] == joining }) {
				return evidence.Found{Share: 0.6, Text: fmt.Sprintf("%s sent its data to %s, which joined the cluster", node.Target, other.Target)}, true
			}
		}
	}
	return evidence.Found{}, false
}

// donor and joining are values of wsrep_local_state.
const donor, joining = 2, 1
