package evidence

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// Unknown is the reason of a stall that nothing explains.
const Unknown = "not known"

// Rules are the reasons that one package declares.
type Rules struct {
	// Engine is the engine whose servers they are about; empty: the servers of every engine. Machines are the engine of
	// package host.
	Engine string
	// Of names the servers in the documentation if several engines have them: "proxies".
	Of      string
	Reasons []Reason
}

// Reason is why a run can stall, found in what was captured.
type Reason struct {
	// Name says what it is, in lower case: "metadata lock". Empty: Find names it.
	Name string
	// Reads describes the evidence, for the documentation.
	Reads string
	// Find returns the reason; false: it does not apply, or it is not known whether it does.
	Find func(*Scene) (Found, bool)
}

// Found is a reason for a stall.
type Found struct {
	// Name replaces the name of the reason.
	Name string
	// Text is a sentence with the numbers, without a period.
	Text string
	// Share is the part of the clients that it stopped, from 0 to 1. Below least it explains nothing.
	Share float64
	// Tree are lines about who waited for whom.
	Tree []string
}

// least is the part of the clients that a reason must stop.
const least = 0.5

// Scene is what was captured of one server or machine during a stall.
type Scene struct {
	Target, Engine, Version string
	// Clients is the number of the tool's clients, 0 if unknown. Seconds is how long the stall lasted.
	Clients, Seconds float64
	// Answers are in the order of time, without failures. Failed counts those, and Error is the last one.
	Answers []*Answer
	Failed  int
	Error   string
	// All are the scenes of the same stall, this one among them.
	All []*Scene
}

var catalogue struct {
	sync.Mutex
	all []*Rules
}

// Declare adds rules to the catalogue. Packages call it for a package variable. It panics if a reason is declared twice:
// that is a mistake in the program.
func Declare(r Rules) *Rules {
	catalogue.Lock()
	defer catalogue.Unlock()
	for _, other := range append(catalogue.all, &Rules{}) {
		for i := range r.Reasons {
			same := func(o Reason) bool { return o.Name != "" && o.Name == r.Reasons[i].Name }
			if other.Engine == r.Engine && slices.ContainsFunc(other.Reasons, same) || slices.IndexFunc(r.Reasons, same) < i && same(r.Reasons[i]) {
				panic("evidence: reason " + r.Reasons[i].Name + " is declared twice")
			}
		}
	}
	catalogue.all = append(catalogue.all, &r)
	return &r
}

// Declared is a reason with the engine that declares it. Of names the servers.
type Declared struct {
	Engine, Of string
	*Reason
}

// All returns the reasons, ordered by engine, servers and name: first those of every engine.
func All() (all []Declared) {
	catalogue.Lock()
	defer catalogue.Unlock()
	for _, r := range catalogue.all {
		for i := range r.Reasons {
			all = append(all, Declared{r.Engine, cmp.Or(r.Of, r.Engine, "every server"), &r.Reasons[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b Declared) int {
		return cmp.Or(strings.Compare(a.Engine, b.Engine), strings.Compare(a.Of, b.Of), strings.Compare(a.Name, b.Name))
	})
	return all
}

// Explanation is why a run stalled.
type Explanation struct {
	// Reason is the name, Unknown if nothing explains the stall. Target is the server or machine.
	Reason, Target string
	// Text is a sentence with the numbers, without a period.
	Text string
	// Also are other reasons that stopped nearly as many clients.
	Also []string
	Tree []string
}

// Explain returns what explains a stall.
func Explain(clients, seconds float64, moments []Moment) Explanation {
	type candidate struct {
		Found
		target string
	}
	var all []candidate
	rules := All()
	for _, s := range scenes(clients, seconds, moments) {
		for _, r := range rules {
			if r.Engine != "" && r.Engine != s.Engine {
				continue
			}
			f, ok := r.Find(s)
			if !ok || !(f.Share >= least) {
				continue
			}
			f.Name = cmp.Or(f.Name, r.Name)
			all = append(all, candidate{f, s.Target})
		}
	}
	if len(all) == 0 {
		return Explanation{Reason: Unknown, Text: unexplained(moments)}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.Share, a.Share) })
	best := all[0]
	e := Explanation{Reason: best.Name, Target: best.target, Text: best.Text, Tree: best.Tree}
	for _, c := range all[1:] {
		if c.Name != best.Name && c.Share > best.Share/2 && !slices.Contains(e.Also, c.Name) {
			e.Also = append(e.Also, c.Name)
		}
	}
	return e
}

// unexplained describes a stall for which no rule has a reason.
func unexplained(moments []Moment) string {
	if len(moments) == 0 {
		return "nothing was captured"
	}
	return "not explained by what was captured"
}

// scenes groups answers by server and machine.
func scenes(clients, seconds float64, moments []Moment) (all []*Scene) {
	for i := range moments {
		for j := range moments[i].Answers {
			a := &moments[i].Answers[j]
			at := slices.IndexFunc(all, func(s *Scene) bool { return s.Target == a.Target && s.Engine == a.Engine })
			if at < 0 {
				at = len(all)
				all = append(all, &Scene{Target: a.Target, Engine: a.Engine, Clients: clients, Seconds: seconds})
			}
			s := all[at]
			if a.Error != "" {
				s.Failed, s.Error = s.Failed+1, a.Error
				continue
			}
			s.Answers, s.Version = append(s.Answers, a), cmp.Or(a.Version, s.Version)
		}
	}
	for _, s := range all {
		s.All = all
	}
	return all
}

// Worst returns the last answer with the largest number; nil if there is none.
func (s *Scene) Worst(number func(*Answer) float64) (worst *Answer, n float64) {
	for _, a := range s.Answers {
		if v := number(a); v >= n || worst == nil && v == v {
			worst, n = a, v
		}
	}
	return worst, n
}

// Most reports whether something holds in at least half of the answers. The last one may come when the stall is over.
func (s *Scene) Most(holds func(*Answer) bool) bool {
	n := 0
	for _, a := range s.Answers {
		if holds(a) {
			n++
		}
	}
	return n > 0 && 2*n >= len(s.Answers)-1
}

// queued is the least number of clients that wait in proxies at once.
func (s *Scene) queued() (sum float64) {
	for _, other := range s.All {
		least := -1.0
		for _, a := range other.Answers {
			if least < 0 || a.Queued < least {
				least = a.Queued
			}
		}
		sum += max(0, least)
	}
	return sum
}

// Share returns a number of sessions as a share of the clients, or of the active sessions if the clients are unknown.
// Clients in the queue of a proxy do not count: they wait for the others.
func (s *Scene) Share(sessions float64, a *Answer) float64 {
	of := s.Clients
	if queued := s.queued(); queued < of {
		of -= queued
	}
	if of == 0 {
		of = float64(a.Active)
	}
	if of == 0 {
		return 0
	}
	return min(1, sessions/of)
}

// Increase returns how much a counter grew per second in the half of the stall in which it grew most; unknown if it is not
// known. A stall often ends in a time in which what caused it is over.
func (s *Scene) Increase(name string) float64 {
	apart := max(1, len(s.Answers)/2)
	most := unknown
	for i := 0; i+apart < len(s.Answers); i++ {
		first, last := s.Answers[i], s.Answers[i+apart]
		v := (last.Number(name) - first.Number(name)) / last.At.Sub(first.At).Seconds()
		if !(v <= most) && v >= 0 {
			most = v
		}
	}
	return most
}
