package limits

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/table"
)

const (
	// localRoundTrip is the length in seconds above which a round trip within one machine shows a proxy: a shorter one
	// is only the time to wake up.
	localRoundTrip = 0.001
	// steadyPing is the least ratio of the shortest round trip to the mean one for a proxy that delays all of them: a
	// wait for a core varies more.
	steadyPing = 0.5
)

// takeWay takes the time on the way to the server. A long way is taken before the threads' time, since even the shortest
// round trip takes it: unless a CPU quota can have held each of them.
func (s *shares) takeWay(first bool) {
	held := slices.ContainsFunc(s.machines, func(m *machineShares) bool { return m.Local.Held >= heldShare })
	if isLong := s.e.RoundTrip >= localRoundTrip && !held; first != isLong {
		return
	}
	s.onTheWay = s.timeOnTheWay()
	takeTime(s.onTheWay, &s.outside, &s.running)
	if first {
		s.attribute(s.onTheWay)
	}
}

// timeOnTheWay is the share of the clients' time in which their statements were on their way to the server and back, 0 if
// unknown. It is spent outside. It is refuted if less time is left there, or if a transaction took less: then the pings
// waited for a core, not the statements.
func (s *shares) timeOnTheWay() float64 {
	e := s.e
	share := e.RoundTrip * e.Statements * e.Throughput / e.Threads
	switch {
	case !(share > 0) || share > 1 || s.sampled && share > s.outside+aboutSame || e.MinLatency < e.RoundTrip*(1-aboutSame):
		return 0
	case e.beside(e.RoundTripTo) && e.RoundTrip < steadyPing*e.MeanRoundTrip && e.RoundTrip >= localRoundTrip:
		return 0
	}
	return min(share, s.outside)
}

func (s *shares) roundTrips() LimitFinding {
	e := s.e
	isFar := e.RoundTrip >= localRoundTrip || !e.beside(e.RoundTripTo)
	return finding(s.onTheWay*certainly(isFar), "repeat with the tool nearer to the servers, or with more threads",
		"each of %s statements of a transaction takes a round trip of at least %.2g ms to %s: %s of the clients' time",
		table.Rounded(e.Statements), e.RoundTrip*1000, e.RoundTripTo, table.Share(s.onTheWay))
}

// beside reports whether the tool runs on a server's machine.
func (e *Evidence) beside(server string) bool {
	return slices.ContainsFunc(e.Machines, func(m MachineEvidence) bool { return m.Generator && slices.Contains(m.Servers, server) })
}

// leastLink is the share of the time above which a full link is a limit: no share of the clients' time shows it.
const leastLink = 0.3

func (m *machineShares) fullLink() LimitFinding {
	return finding(m.Network.High*certainly(m.Network.High >= leastLink), "repeat with a faster link, or with smaller results",
		"the link of %s was used by %s on average, and by at least %s for %s of the time",
		m.Name, table.Share(m.Network.Mean), table.Share(BusyNetwork), table.Share(m.Network.High))
}
