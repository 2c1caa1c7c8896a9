package limits

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// StallEvidence is how long a server was in a state in which it does less, and what that cost. From is the value from
// which on it is in that state.
type StallEvidence struct {
	*cause.Stall
	Slowdown
	From string
}

// Slowdown compares the throughput while a server was in a state with the throughput in the rest of the run.
type Slowdown struct {
	// Held is the share of the run's intervals in that state.
	Held float64
	// During and Otherwise are transactions per second, unknown if there are too few
	// intervals of one of them.
	During, Otherwise float64
	// Stopped is the share of the run's intervals in that state in which no transaction ended.
	Stopped float64
}

// lost returns the share of the clients' time that the state cost: the drop in throughput, of which at most idle counts,
// or the standstills, which the tool's own output shows. It may be unknown.
func (s *Slowdown) lost(idle float64) float64 {
	slower := min(s.Held*max(0, 1-s.During/s.Otherwise), idle)
	if !series.IsKnown(slower) {
		return s.Stopped
	}
	return max(slower, cause.OrZero(s.Stopped))
}

// text describes the transactions during the state.
func (s *Slowdown) text() string {
	text := fmt.Sprintf(" for %s of the time", table.Share(s.Held))
	if s.During < s.Otherwise { // neither is unknown
		return text + fmt.Sprintf(": %s transactions/s then, %s otherwise", table.Rounded(s.During), table.Rounded(s.Otherwise))
	}
	return text + fmt.Sprintf(": in %s of the time no transaction ended", table.Share(s.Stopped))
}

// takeStalls takes the time of states of a server in which it does less. Its sessions seem to run, because the server
// reports no wait for them. While they wait for something else, that is the cause, not the state; and a thread that a
// state holds back neither runs nor waits for a core.
func (s *shares) takeStalls() {
	left := 1.0
	for _, class := range []string{engine.Lock, engine.Replication, engine.Network, other} {
		left -= s.byClass[class]
	}
	back := s.byClass[engine.FlowControlWait] // the sessions may not show all of it
	if s.paused != nil {
		back = max(back, s.paused.FlowControl.Mean)
	}
	left -= back
	idle := s.idle()
	stall := func(state *Slowdown, explained float64) float64 {
		if !(state.During < state.Otherwise) { // only the standstills show what it cost
			explained = max(explained, back)
			left = min(left, cause.OrZero(state.Stopped)-explained)
		}
		share := min(state.lost(idle), max(0, left))
		if s.attribute(share) {
			takeTime(share, &s.running, &s.outside)
		}
		return share
	}
	for _, server := range s.servers {
		for i := range server.Stalls {
			server.stalled = append(server.stalled, stall(&server.Stalls[i].Slowdown, server.stoppedByWaits()/s.e.Seconds))
		}
	}
}

// idle returns the share of the clients' time in which threads of the servers neither ran nor waited for a core: 1 if that
// is not known.
func (s *shares) idle() float64 {
	if !s.localKnown() {
		return 1
	}
	idle := s.running
	for class, waited := range s.byClass {
		if class != engine.Running {
			idle += waited
		}
	}
	return idle
}

// stoppedByWaits returns the seconds of the standstills in which nearly all clients waited for one thing on the server.
func (s *serverShares) stoppedByWaits() (seconds float64) {
	for class, stop := range s.Stopped {
		if class != engine.Running {
			seconds = max(seconds, stop.Seconds)
		}
	}
	return seconds
}

// addStalls adds the states in which servers did less.
func (f *finder) addStalls() {
	for _, server := range f.servers {
		for i, share := range server.stalled {
			stall := &server.Stalls[i]
			f.add(stall.Limit, finding(share, cause.Advice(server.Engine, stall.Limit),
				stall.Text+"%s", server.Name, stall.From, stall.text()))
		}
	}
}
