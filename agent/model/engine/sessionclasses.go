package engine

import "github.com/benchwatch/benchwatch/agent/model/measure"

// Classes of what sessions wait for. A new one also needs a measure, its place in SessionMeasures, and a colour in
// agent/show/document/palette.css. Engines assign their own waits to classes.
const (
	Running         = "running"
	RowLock         = "row_lock"
	Lock            = "lock" // for tables, metadata, the whole server
	Commit          = "commit"
	FlowControlWait = "flow_control"
	Replication     = "replication" // certification, acknowledgement of replicas
	Disk            = "disk"
	Latch           = "latch" // within the server
	Network         = "network"
	Other           = "other"
)

// SessionEvent is the label of ActiveSessions with the server's own name for the wait.
const SessionEvent = "event"

// The sessions of each class. The chart of all is named after the whole.
var (
	RunningSessions     = sessions(240, "sessions_running", "running", Running)
	RowLockSessions     = sessions(241, "sessions_row_lock", "row lock", RowLock)
	LockSessions        = sessions(242, "sessions_lock", "other locks", Lock)
	CommitSessions      = sessions(243, "sessions_commit", "commit", Commit)
	FlowControlSessions = sessions(244, "sessions_flow_control", "flow control", FlowControlWait)
	ReplicationSessions = sessions(245, "sessions_replication", "replication", Replication)
	DiskSessions        = sessions(246, "sessions_disk", "disk", Disk)
	LatchSessions       = sessions(247, "sessions_latch", "latch", Latch)
	NetworkSessions     = sessions(248, "sessions_network", "network", Network)
	OtherSessions       = sessions(249, "sessions_other", "other", Other)
)

// SessionMeasures returns the measures of sessions by class.
func SessionMeasures() []*measure.Measure {
	return []*measure.Measure{
		RunningSessions, RowLockSessions, LockSessions, CommitSessions, FlowControlSessions,
		ReplicationSessions, DiskSessions, LatchSessions, NetworkSessions, OtherSessions,
	}
}

// SessionsOf returns the measure of sessions of a class, nil for an unknown class.
func SessionsOf(class string) *measure.Measure {
	for _, m := range SessionMeasures() {
		if sessionClasses[m] == class {
			return m
		}
	}
	return nil
}

// SessionClass returns the class of such a measure.
func SessionClass(m *measure.Measure) string { return sessionClasses[m] }

var sessionClasses = map[*measure.Measure]string{}

// firstSessions is the measure whose chart shows the other classes.
var firstSessions *measure.Measure

func sessions(rank int, id, label, class string) *measure.Measure {
	m := measure.New(measure.Measure{
		ID: id, Title: "Sessions: " + label, Line: label, Note: "active sessions by what they wait for, on average", Unit: measure.Count, Scope: measure.Server,
		Summary: measure.Mean, Rank: rank, Stacked: true, Spread: true, ChartOf: firstSessions,
	}).Or(measure.ValueOf(ActiveSessions).On("class", class))
	sessionClasses[m] = class
	if firstSessions == nil {
		firstSessions = m
		m.Title = "Active sessions"
	}
	return m
}
