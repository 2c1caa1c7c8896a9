package limits

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// mostPaused returns the server whose writes were held back for longest, nil if this is unknown for all servers.
func (e *Evidence) mostPaused() *ServerEvidence {
	var most *ServerEvidence
	for i := range e.Servers {
		s := &e.Servers[i]
		if series.IsKnown(s.FlowControl.Mean) && (most == nil || s.FlowControl.Mean > most.FlowControl.Mean) {
			most = s
		}
	}
	return most
}

// mostAsking returns the server that requested flow control most often, nil if none did.
func (e *Evidence) mostAsking() *ServerEvidence {
	var asked *ServerEvidence
	for i := range e.Servers {
		s := &e.Servers[i]
		if s.FlowControlSent > 0 && (asked == nil || s.FlowControlSent > asked.FlowControlSent) {
			asked = s
		}
	}
	return asked
}

// takeFlowControl takes the time in which writes were held back, beyond what the sessions show.
func (s *shares) takeFlowControl() {
	s.flowControlled = s.byClass[engine.FlowControlWait]
	if s.paused != nil {
		takeTime(s.paused.FlowControl.Mean-s.flowControlled, &s.running, &s.outside)
		s.flowControlled = max(s.flowControlled, s.paused.FlowControl.Mean)
	}
	s.attribute(s.flowControlled)
}

func (s *shares) flowControl() LimitFinding {
	out := LimitFinding{Share: s.flowControlled, Test: s.advice(cause.FlowControl)}
	out.Evidence = "clients waited for flow control for " + s.ofClients(s.flowControlled)
	if s.paused != nil && s.paused.FlowControl.Mean >= s.flowControlled {
		out.Evidence = fmt.Sprintf("writes were held back for %s of the time", table.Share(s.flowControlled))
	}
	if s.asksForPauses != nil {
		out.Evidence += fmt.Sprintf(", and %s asked for it %s", s.asksForPauses.Name, times(s.asksForPauses.FlowControlSent))
	}
	return out
}

// leastBack is the share of the clients above which clients that flow control held back are named.
const leastBack = 0.02

// heldBackToo explains why fewer clients are reported to wait for a cluster than its sessions show, or names flow
// control that is too small for its own finding.
func (s *shares) heldBackToo() string {
	back, mean := 0.0, s.paused.FlowControl.Mean
	for i := range s.e.Servers {
		back += cause.OrZero(s.e.Servers[i].HeldBack["replication"])
	}
	switch {
	case mean >= LeastShare && back >= leastBack*s.e.Threads:
		return fmt.Sprintf(", without another %s that flow control held back", table.Rounded(back))
	case mean < LeastShare && s.asksForPauses != nil:
		return fmt.Sprintf("; %s asked for flow control %s, which held writes back for %s of the time",
			s.asksForPauses.Name, times(s.asksForPauses.FlowControlSent), table.Share(mean))
	}
	return ""
}
