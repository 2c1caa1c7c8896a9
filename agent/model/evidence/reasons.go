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

// Level is how near a reason is to what began a stall. Of the reasons that explain one, those of the highest level count.
type Level int

const (
	// Symptom: clients wait for something that something else holds up, such as the end of a commit.
	Symptom Level = iota - 1
	// Cause: what clients wait for, or a resource that they need.
	Cause
	// Origin: nothing works at a server or in a cluster, so that all else follows from it.
	Origin
)

// Reason is why a run can stall. A stall is explained by what most of its clients waited for, during the seconds that
// were looked at.
type Reason struct {
	// Name says what it is, in lower case: "metadata lock".
	Name string
	// Reads describes the evidence, for the documentation.
	Reads string
	Level Level
	// Part is the part of the clients that it held up at one look, from 0 to 1; unknown if the look does not show it.
	Part func(*Look) float64
	// Text is a sentence with the numbers, without a period. worst is the last look with the largest part.
	Text func(s *Scene, worst *Look) string
	// Tree returns lines about who waited for whom. It may be nil.
	Tree func(worst *Look) []string
	// Each, instead of Part and Text, returns the reasons that a scene itself names.
	Each func(*Scene) []Reason
}

// least is the part of the clients' waiting that a reason must explain.
const least = 0.5

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
	// Also are other reasons that explain it, such as what the reason led to.
	Also []string
	Tree []string
}

// candidate is a reason that explains a stall, and the part of the clients' waiting that it explains.
type candidate struct {
	Reason
	scene *Scene
	part  float64
}

// Explain returns what explains a stall.
func Explain(clients, seconds float64, moments []Moment) Explanation {
	var all []candidate
	rules := All()
	for _, s := range scenes(clients, seconds, moments) {
		for _, r := range rules {
			if r.Engine != "" && r.Engine != s.Engine {
				continue
			}
			reasons := []Reason{*r.Reason}
			if r.Each != nil {
				reasons = r.Each(s)
			}
			for _, reason := range reasons {
				if part := s.Mean(reason.Part); part >= least {
					all = append(all, candidate{reason, s, part})
				}
			}
		}
	}
	if len(all) == 0 {
		return Explanation{Reason: Unknown, Text: unexplained(moments)}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(b.part, a.part))
	})
	best := all[0]
	worst, _ := best.scene.Worst(best.Part)
	e := Explanation{Reason: best.Name, Target: best.scene.Target, Text: best.Text(best.scene, worst)}
	if best.Tree != nil {
		e.Tree = best.Tree(worst)
	}
	for _, c := range all[1:] {
		if c.Name != best.Name && !slices.Contains(e.Also, c.Name) {
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
