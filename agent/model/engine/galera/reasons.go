package galera

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/engine/mysql"
	"github.com/benchwatch/benchwatch/agent/model/evidence"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

var _ = engine.DeclareOnset(engine.Onset{Metric: pausedSeconds, PerSecond: true, High: 0.3, Text: "flow control began on %s"})

// What the status of a node says during a stall.
const (
	pausedFor  = "wsrep_flow_control_paused_ns"
	pausesSent = "wsrep_flow_control_sent"
	toApply    = "wsrep_local_recv_queue"
	nodeState  = "wsrep_local_state"
	status     = "wsrep_cluster_status"
)

// donor and joining are values of wsrep_local_state.
const donor, joining = 2, 1

// transferring is the part of the clients that a state transfer is taken to hold up: nothing shows more than that it takes
// place.
const transferring = 0.6

// Reasons for stalls of a cluster.
var _ = evidence.Declare(evidence.Rules{
	Engine: mysql.Name,
	Reasons: []evidence.Reason{
		{Name: "flow control", Reads: "`wsrep_flow_control_paused_ns`, `wsrep_flow_control_sent` and `wsrep_local_recv_queue` of all nodes",
			Part: func(l *evidence.Look) float64 { return l.Increase(pausedFor) / 1e9 }, Text: pausedText},
		{Name: "state transfer", Reads: "`wsrep_local_state` of all nodes",
			Part: func(l *evidence.Look) float64 {
				if l.Number(nodeState) == donor && joiner(l) != "" {
					return transferring
				}
				return 0
			},
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("%s sent its data to %s, which joined the cluster", s.Target, joiner(worst))
			}},
		{Name: "not in the primary component", Reads: "`wsrep_cluster_status`", Level: evidence.Origin,
			Part: func(l *evidence.Look) float64 {
				if text := l.Texts[status]; text == "" || text == "Primary" || text == "Disconnected" {
					return 0
				}
				return l.Remaining()
			},
			Text: func(s *evidence.Scene, worst *evidence.Look) string {
				return fmt.Sprintf("%s was not in the primary component (wsrep_cluster_status = %s, %s nodes)", s.Target,
					table.Plain(worst.Texts[status]), table.Rounded(worst.Number("wsrep_cluster_size")))
			}},
	},
})

// joiner is a node that gets the data of another one at the same moment; empty if there is none.
func joiner(l *evidence.Look) string {
	for _, other := range l.Beside(mysql.Name) {
		if other.Number(nodeState) == joining {
			return other.Target
		}
	}
	return ""
}

// pausedText says that flow control paused replication, and which node asked for that.
func pausedText(s *evidence.Scene, _ *evidence.Look) string {
	text := fmt.Sprintf("flow control paused writes on %s for %s of the time", s.Target, table.Share(min(1, s.Increase(pausedFor)/1e9)))
	if absent := s.Absent(); absent != "" { // it can't be asked for its queue
		return text + absent
	}
	slow, longest := "", 0.0
	for _, node := range s.All {
		if node.Engine != s.Engine {
			continue
		}
		if _, queue := node.Worst(func(l *evidence.Look) float64 { return l.Number(toApply) }); queue > longest {
			longest, slow = queue, fmt.Sprintf("; %s had up to %s write sets to apply", node.Target, table.Rounded(queue))
			if node.Increase(pausesSent) > 0 {
				slow += " and asked for the pauses"
			}
		}
	}
	return text + slow
}
