package alert

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/benchwatch/benchwatch/agent/marker"
)

// inhibition is a rule of Alertmanager's: while an alert called source fires, those
// called target are not sent that have the same labels.
type inhibition struct {
	source, target *regexp.Regexp
	equal          []string
}

// inhibitions are those of alerts/alertmanager.yml. Alertmanager sends an alert as soon
// as the one that inhibits it has ended; to a run it is still the same cause.
var inhibitions = []inhibition{
	inhibit("DatabaseDown", "Replication.+|GaleraNode.+|GaleraReceiveQueueGrowing|GroupReplicationMemberNotOnline|GroupReplication.+QueueGrowing", "cluster", "target"),
	inhibit("GaleraNodeNotPrimary", "GaleraNodeNotSynced", "cluster", "target"),
	inhibit("GaleraNodeNotPrimary|GaleraNodeNotSynced|GroupReplicationMemberNotOnline|ReplicationStopped", "ReplicationLag.+|GaleraReceiveQueueGrowing|GroupReplication.+QueueGrowing", "cluster", "target"),
	inhibit("ReplicationLagHigh", "ReplicationLagGrowing|GaleraReceiveQueueGrowing|GroupReplicationApplierQueueGrowing", "cluster", "target"),
	inhibit("ReplicationLagGrowing", "GaleraReceiveQueueGrowing|GroupReplicationApplierQueueGrowing", "cluster", "target"),
	inhibit("MongoDBOplogWindowShort", "MongoDBReplicationLagHigh", "cluster", "member"),
	inhibit("GaleraFlowControlCritical", "GaleraFlowControlHigh|GaleraNodeSlow", "cluster"),
	inhibit("GaleraNodeSlow", "GaleraFlowControlHigh", "cluster"),
	inhibit("GeneratorSaturated", "HostCPUSaturated", "run", "nodename"),
	inhibit("GaleraCommitsStopped", "RunStalled|RunThroughputCollapsed|RunLatencyHigh", "run"),
	inhibit("RunStalled", "RunThroughputCollapsed|RunLatencyHigh", "run"),
	inhibit("RunThroughputCollapsed", "RunLatencyHigh", "run"),
}

func inhibit(source, target string, equal ...string) inhibition {
	whole := func(names string) *regexp.Regexp { return regexp.MustCompile("^(?:" + names + ")$") }
	return inhibition{whole(source), whole(target), equal}
}

// lull is how long an alert may be silent and then fire again as the same cause: it ends
// when the agent is stopped for a moment, and fires again after its waiting time.
const lull = time.Minute

// continues reports whether a marker of a run is of this alert, which alerts again with
// a new start after a lull, or if Prometheus and Alertmanager have been restarted.
func (al *alert) continues(m *marker.Marker, runID string) bool {
	start := al.StartsAt.Truncate(time.Millisecond) // as a marker's
	return m.Kind == marker.Alert && strings.HasPrefix(m.ID, al.cause(runID)+"-") &&
		(m.End.IsZero() || !start.After(m.End.Add(lull))) && (!al.resolved() || !al.end().Before(m.Start))
}

// isEffectOf reports whether a marker of the same run is of an alert that inhibits this
// one, which began before that had ended.
func (al *alert) isEffectOf(m *marker.Marker) bool {
	if m.Kind != marker.Alert || !m.End.IsZero() && al.StartsAt.After(m.End) || al.resolved() && al.end().Before(m.Start) {
		return false
	}
	tag := func(key string) string {
		for _, t := range m.Tags {
			if value, ok := strings.CutPrefix(t, key+":"); ok {
				return value
			}
		}
		return ""
	}
	source, target := tag("alert"), al.Labels["alertname"]
	return slices.ContainsFunc(inhibitions, func(rule inhibition) bool {
		return rule.source.MatchString(source) && rule.target.MatchString(target) && source != target &&
			!slices.ContainsFunc(rule.equal, func(label string) bool { return label != "run" && tag(label) != al.Labels[label] })
	})
}
