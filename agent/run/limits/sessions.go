package limits

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// other is the class of waits that no other class has.
const other = engine.Other

// StateEvidence is how many sessions were in a state, on average.
type StateEvidence struct {
	Class, Name string
	Sessions    float64
}

// divideSessions divides the clients' time by what their sessions did.
func (s *shares) divideSessions() {
	if !(s.e.Threads > 0) {
		return
	}
	sum, total := map[string]float64{}, 0.0
	for i := range s.e.Servers {
		for class, n := range s.e.Servers[i].Sessions {
			s.sampled = true
			if series.IsKnown(n) {
				sum[class] += n
				total += n
			}
		}
	}
	if !s.sampled {
		return
	}
	threads := max(s.e.Threads, total) // others' sessions are in it
	s.byClass = map[string]float64{}
	for class, n := range sum {
		s.byClass[class] = n / threads
	}
	s.byState = map[StateEvidence]float64{}
	for i := range s.e.Servers {
		for _, state := range s.e.Servers[i].States {
			s.byState[StateEvidence{Class: state.Class, Name: state.Name}] += state.Sessions / threads
		}
	}
	s.running, s.outside = s.byClass[engine.Running], max(0, 1-total/threads)
	if slices.ContainsFunc(s.e.Machines, func(m MachineEvidence) bool {
		return m.Server && (m.Generator || m.CPU.High >= mostlyBusy)
	}) {
		// A session that sends to its client waits for a core as others do; there is no network.
		s.running += s.byClass[engine.Network]
		delete(s.byClass, engine.Network)
	}
}

// takeWaits divides what sessions waited for among the waits that the servers' engines declare.
func (s *shares) takeWaits() {
	s.waits = s.e.waits()
	s.waited = make([]float64, len(s.waits))
	left := maps.Clone(s.byClass) // by class, without the states that have an entry
	for i, c := range s.waits {
		share := left[c.Class]
		if c.State != "" {
			share = 0
			for state, of := range s.byState {
				if state.Class == c.Class && strings.HasPrefix(state.Name, c.State) {
					share += of
				}
			}
			share = min(left[c.Class], share)
			if left != nil {
				left[c.Class] -= share
			}
		}
		if c.Class == engine.Disk {
			share -= s.pooled
		}
		if s.waited[i] = share; s.attribute(share) && c.Class == other {
			s.byClass[other] -= share
		}
	}
	if s.state, s.inState = s.largest(left[other], true); s.attribute(s.inState) {
		s.byClass[other] -= s.inState
	}
}

// largest returns the state of the class other that took most of the clients' time, at most the remaining time. With
// unruled it skips states that have an entry in waits.
func (s *shares) largest(left float64, unruled bool) (name string, share float64) {
	for state, of := range s.byState {
		ruled := slices.ContainsFunc(s.waits, func(w cause.Wait) bool {
			return w.Class == other && w.State != "" && strings.HasPrefix(state.Name, w.State)
		})
		if state.Class == other && !(ruled && unruled) && (of > share || of == share && state.Name < name) {
			name, share = state.Name, of
		}
	}
	return name, min(share, left)
}

// waits returns what sessions of the run's servers wait for, states first.
func (e *Evidence) waits() (all []cause.Wait) {
	for i := range e.Servers {
		for _, w := range cause.WaitsOf(e.Servers[i].Engine, e.Servers[i].Reports) {
			if !slices.ContainsFunc(all, func(o cause.Wait) bool { return o.Class == w.Class && o.State == w.State }) {
				all = append(all, w)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b cause.Wait) int { return cmp.Compare(min(1, len(b.State)), min(1, len(a.State))) })
	return all
}

// where returns the servers with most sessions of a class, and when these stopped all clients.
func (s *shares) where(class string) (names string, stop Standstill) {
	most := 0.0
	for _, server := range s.servers {
		most = max(most, cause.OrZero(server.Sessions[class]))
	}
	var all []string
	for _, server := range s.servers {
		if n := cause.OrZero(server.Sessions[class]); n > 0 && n >= most/4 {
			all = append(all, server.Name)
			if server.Stopped[class].Seconds > stop.Seconds {
				stop = server.Stopped[class]
			}
		}
	}
	return strings.Join(all, ", "), stop
}

// mostStopped is the share of a finding's time above which its evidence is only the standstill.
const mostStopped = 0.8

// addWaits adds the waits that the sessions themselves report.
func (f *finder) addWaits() {
	for i, c := range f.waits {
		share, also := f.waited[i], ""
		names, stop := f.where(c.Class)
		finding := LimitFinding{Share: share, Test: cmp.Or(f.meaning(&c), c.Test), Seconds: stop.Seconds}
		if c.Class == engine.Replication && f.paused != nil {
			also = f.heldBackToo()
		}
		stopped := stop.text(f.e.Seconds)
		if stop.Seconds >= mostStopped*share*f.e.Seconds {
			finding.Test = cmp.Or(c.Stopped, finding.Test)
			finding.Evidence = fmt.Sprintf("%s: the clients %s on %s%s", stopped, c.Waits, names, also)
		} else {
			if stop.Seconds > 0 {
				also += "; " + stopped
			}
			finding.Evidence = fmt.Sprintf("clients %s on %s for %s%s", c.Waits, names, f.ofClients(share), also)
		}
		f.add(c.Limit, finding)
	}
}

// meaning returns what the settings of all servers on which sessions waited mean for the limit; empty if there is a
// server for which they mean nothing.
func (s *shares) meaning(w *cause.Wait) (test string) {
	for i := range s.e.Servers {
		if one := &s.e.Servers[i]; one.Sessions[w.Class] > 0 {
			if test = one.Meanings[w.Limit]; test == "" {
				return ""
			}
		}
	}
	return test
}

// unruledState returns the finding about a state that no engine declares as a wait.
func (s *shares) unruledState() LimitFinding {
	names, _ := s.where(other)
	return finding(s.inState, s.advice(cause.State),
		"clients were in the state %q on %s for %s", s.state, names, s.ofClients(s.inState))
}

// Standstill is a time in which the tool's output shows that no transaction ended: Seconds in Times stretches. The
// longest stretch is from second From to second To of the run.
type Standstill struct {
	Seconds, From, To float64
	Times             int
}

// text is a clause about the standstill in a run of some seconds.
func (s Standstill) text(of float64) string {
	text := fmt.Sprintf("no transaction ended for %s of %s s", table.Rounded(s.Seconds), table.Rounded(of))
	if s.Times == 1 {
		return text + fmt.Sprintf(" in one stretch, from second %.0f on", s.From)
	}
	return text + fmt.Sprintf(" in %d stretches, the longest one from second %.0f to second %.0f", s.Times, s.From, s.To)
}
