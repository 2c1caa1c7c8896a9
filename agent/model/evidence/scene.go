package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Scene is what was captured of one server or machine during a stall.
type Scene struct {
	Target, Engine, Version string
	// Clients is the number of the tool's clients, 0 if unknown. Seconds is how long the stall lasted.
	Clients, Seconds float64
	// Looks are in the order of time, also those without an answer.
	Looks []*Look
	// All are the scenes of the same stall, this one among them.
	All []*Scene
}

// Look is what one server or machine said at one moment. Without an answer it has only an Error.
type Look struct {
	*Answer
	scene *Scene
	// weight is how many seconds of the stall are nearest to it.
	weight float64
	// before and after are the looks beside it that have answers, nil if there are none; beside are all looks of the
	// same moment.
	before, after *Look
	beside        *[]*Look
	ended         map[Kind]float64
}

// scenes groups answers by server and machine. Looks outside of the stall are left out.
func scenes(clients, seconds float64, moments []Moment) (all []*Scene) {
	weighted := slices.ContainsFunc(moments, func(m Moment) bool { return m.Seconds > 0 })
	for i := range moments {
		if weighted && !(moments[i].Seconds > 0) {
			continue
		}
		beside := &[]*Look{}
		for j := range moments[i].Answers {
			a := &moments[i].Answers[j]
			at := slices.IndexFunc(all, func(s *Scene) bool { return s.Target == a.Target && s.Engine == a.Engine })
			if at < 0 {
				at = len(all)
				all = append(all, &Scene{Target: a.Target, Engine: a.Engine, Clients: clients, Seconds: seconds})
			}
			s := all[at]
			s.Version = cmp.Or(a.Version, s.Version)
			l := &Look{Answer: a, scene: s, weight: cmp.Or(moments[i].Seconds, 1), beside: beside}
			*beside = append(*beside, l)
			s.Looks = append(s.Looks, l)
		}
	}
	for _, s := range all {
		s.All = all
		s.link()
	}
	return all
}

// link connects each look with the answers beside it.
func (s *Scene) link() {
	var last *Look
	for _, l := range s.Looks {
		l.before = last
		if l.Error == "" {
			last = l
		}
	}
	last = nil
	for _, l := range slices.Backward(s.Looks) {
		l.after = last
		if l.Error == "" {
			last = l
		}
	}
}

// Mean is the mean of a part of the clients over the seconds of the stall. An unknown part counts as 0: nothing shows it.
func (s *Scene) Mean(part func(*Look) float64) float64 {
	sum, seconds := 0.0, 0.0
	for _, l := range s.Looks {
		if v := part(l); v > 0 {
			sum += min(1, v) * l.weight
		}
		seconds += l.weight
	}
	if seconds == 0 {
		return 0
	}
	return sum / seconds
}

// Worst returns the last look with the largest number; nil if no look has one.
func (s *Scene) Worst(number func(*Look) float64) (worst *Look, n float64) {
	for _, l := range s.Looks {
		if v := number(l); v >= n || worst == nil && v == v {
			worst, n = l, v
		}
	}
	return worst, n
}

// Count describes at how many looks something holds: "4 of 5 looks".
func (s *Scene) Count(holds func(*Look) bool) string {
	n := 0
	for _, l := range s.Looks {
		if holds(l) {
			n++
		}
	}
	return fmt.Sprintf("%d of %s", n, table.Plural(len(s.Looks), "look"))
}

// Increase returns the largest growth of a counter per second between two looks; unknown if it is not known.
func (s *Scene) Increase(name string) float64 {
	most := unknown
	for _, l := range s.Looks {
		if v := l.Increase(name); !(v <= most) && series.IsKnown(v) {
			most = v
		}
	}
	return most
}

// Absent names the other servers that did not answer at most looks: "; n3 did not answer". It is empty if all did.
func (s *Scene) Absent() string {
	var names []string
	for _, other := range s.All {
		if other != s && other.Mean(failed) >= least {
			names = append(names, other.Target)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + strings.Join(names, ", ") + " did not answer"
}

// failed is 1 for a look without an answer.
func failed(l *Look) float64 {
	if l.Error != "" {
		return 1
	}
	return 0
}

// Increase returns the growth of a counter per second, from the look before or to the one after: the larger one, since a
// look at the begin or at the end of a stall has one outside of it. It is unknown if neither is known.
func (l *Look) Increase(name string) float64 {
	most := unknown
	for _, other := range []*Look{l.before, l.after} {
		if other == nil || l.Error != "" {
			continue
		}
		v := (l.Number(name) - other.Number(name)) / l.At.Sub(other.At).Seconds()
		if v >= 0 && !(v <= most) {
			most = v
		}
	}
	return most
}

// Beside returns the looks of the same moment at the other servers of an engine.
func (l *Look) Beside(engine string) (all []*Look) {
	for _, other := range *l.beside {
		if other != l && other.Engine == engine {
			all = append(all, other)
		}
	}
	return all
}

// InProxies is how many clients wait in the queues of proxies.
func (l *Look) InProxies() (sum float64) {
	for _, other := range *l.beside {
		sum += other.Queued
	}
	return sum
}

// Share returns a number of sessions as a share of the clients, or of the active sessions if the clients are unknown.
// Clients in the queue of a proxy do not count: they wait for the others.
func (l *Look) Share(sessions float64) float64 {
	of := l.scene.Clients
	if queued := l.InProxies(); queued < of {
		of -= queued
	}
	if of == 0 {
		of = float64(l.Active)
	}
	if of == 0 {
		return 0
	}
	return min(1, sessions/of)
}

// ShareOfAll returns a number of clients as a share of all of them, also of those in the queue of a proxy; 1 if their
// number is unknown.
func (l *Look) ShareOfAll(clients float64) float64 {
	return min(1, clients/max(1, l.scene.Clients))
}

// Waits is how many sessions wait for one of some kinds.
func (l *Look) Waits(kinds ...Kind) (n float64) {
	for _, kind := range kinds {
		n += float64(l.Waiting[kind])
	}
	return n
}

// Executing is the share of the clients whose sessions execute a statement here, and wait for no other session.
func (l *Look) Executing() float64 {
	n := float64(l.Active)
	for kind, waiting := range l.Waiting {
		if !symptoms[kind] {
			n -= float64(waiting)
		}
	}
	return l.Share(max(0, n))
}

// Remaining is the share of the clients that are not at another server, where they would be executing statements or
// waiting for locks: those that this server or machine stops if nothing works here.
func (l *Look) Remaining() float64 {
	elsewhere := 0.0
	for _, other := range *l.beside {
		if other == l {
			continue
		}
		elsewhere += float64(other.Active)
		for kind := range symptoms {
			elsewhere -= float64(other.Waiting[kind])
		}
	}
	return 1 - l.Share(max(0, elsewhere))
}

// ForLog is the share of the clients whose sessions wait, at any server, until a log is written, or execute something at a
// server that can't list its sessions.
func (l *Look) ForLog() float64 {
	n := 0.0
	for _, other := range *l.beside {
		n += other.Waits(Committing, LogWrite)
		if len(other.States) == 0 {
			n += float64(other.Active)
		}
	}
	return l.Share(n)
}
