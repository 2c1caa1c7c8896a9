package limits

import (
	"fmt"
	"math"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// shares divides the clients' time among what may have limited them. newShares fills it, and only addClients
// and compareRate change it afterwards. Each step takes a share of the time that the previous steps left in running
// and outside, and each file has one idea: its share, and the finding in it.
type shares struct {
	e *Evidence
	// running in a server, and outside, are the time that nothing explains yet. Without sessions, all time is outside.
	running, outside float64
	sampled          bool
	byClass          map[string]float64 // what sessions waited for
	byState          map[StateEvidence]float64
	servers          []*serverShares
	machines         []*machineShares
	proxies          []*proxyShares
	pooled           float64      // of running: reading pages
	waits            []cause.Wait // of the servers' engines
	waited           []float64    // by entry of waits
	// state is the wait of class other, without an entry in waits, that took most of the time.
	state   string
	inState float64
	// paused is the server that was paused longest by flow control, asksForPauses the one that asked for it.
	paused, asksForPauses *ServerEvidence
	flowControlled        float64 // writes held back
	onTheWay              float64 // round trips
	attributed            float64 // the sum of the shares that are large enough for a finding
}

// serverShares are the shares of the time that the state of one server explains.
type serverShares struct {
	*ServerEvidence
	stalled   []float64 // by entry of Stalls
	pool      float64
	ran       float64 // while nearly all cores of its machine were busy, as only the database reports
	estimated bool    // pool, since neither waits for pages nor disks were observed
	read      float64 // seconds of a read of the disk, unknown if no disk was observed
}

// machineShares are the shares of the time that one machine explains.
type machineShares struct {
	*MachineEvidence
	of          *shares
	tool, local program
	// byOthers and waited are the time in which clients waited for a core because of other programs, and for other
	// reasons. ran is the time in which they had a core while nearly all were busy.
	byOthers, waited, ran float64
	oneCore, disk         float64
}

// newShares divides the clients' time. The order of the steps matters: a state that stops a server
// comes before the time that its sessions seem to run, and this before what is left outside.
func newShares(e *Evidence) *shares {
	s := &shares{e: e, outside: 1, paused: e.mostPaused(), asksForPauses: e.mostAsking()}
	for i := range e.Servers {
		s.servers = append(s.servers, &serverShares{ServerEvidence: &e.Servers[i]})
	}
	for i := range e.Machines {
		s.machines = append(s.machines, &machineShares{MachineEvidence: &e.Machines[i], of: s})
	}
	for i := range e.Proxies {
		s.proxies = append(s.proxies, &proxyShares{ProxyEvidence: &e.Proxies[i], of: s})
	}
	s.divideSessions()
	s.takeQueues()
	s.takeWay(true)
	s.divideThreads()
	for _, failed := range []bool{e.isRefused(), e.NoPort != "", e.NoFile != ""} {
		if failed {
			s.attribute(1)
		}
	}
	s.takeStalls()
	s.takePool()
	s.takeWaits()
	s.takeFlowControl()
	for _, server := range s.servers {
		s.takeReportedCPU(server)
	}
	for _, m := range s.machines {
		if m.Generator || m.Server {
			s.takeCores(m)
			s.takeOneCore(m)
			s.attribute(m.stolen())
			s.takeDisk(m)
		}
	}
	s.takeProxyThreads()
	s.takeWay(false)
	return s
}

// attribute adds a share to the sum of the findings' shares, and reports whether it is large enough for a finding.
func (s *shares) attribute(share float64) bool {
	if !(share >= LeastShare) {
		return false
	}
	s.attributed += rounded(share)
	return true
}

// unattributed is the share of the clients' time that no finding explains so far.
func (s *shares) unattributed() float64 { return 1 - min(1, s.attributed) }

// rounded returns a share with the precision of findings.
func rounded(share float64) float64 { return math.Round(min(1, share)*1000) / 1000 }

// takeTime takes a share of the clients' time from the remaining time in one place, then from the other.
func takeTime(wanted float64, from, then *float64) float64 {
	wanted = cause.OrZero(wanted)
	first := max(0, min(wanted, *from))
	*from -= first
	second := max(0, min(wanted-first, *then))
	*then -= second
	return first + second
}

// aboutSame is how much shares that are measured in different ways may differ.
const aboutSame = 0.1

// advice returns the test of a limit that belongs to no single server.
func (s *shares) advice(limit cause.Limit) string { return cause.Advice(s.e.engine(), limit) }

// ofClients describes a share of the clients' time.
func (s *shares) ofClients(share float64) string {
	return fmt.Sprintf("%s of their time, %s of %s on average", table.Share(share),
		table.Rounded(share*s.e.Threads), table.Rounded(s.e.Threads))
}
