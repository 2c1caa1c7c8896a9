package limits

import (
	"github.com/benchwatch/benchwatch/agent/model/cause"
)

// LimitFinding is a limit with its evidence.
type LimitFinding struct {
	Limit cause.Limit `json:"limit"`
	// Of is the server or program that was at the limit; empty for other limits.
	Of string `json:"of,omitempty"`
	// Evidence is a sentence with the numbers, Test an experiment that would confirm the finding.
	Evidence string `json:"evidence"`
	Test     string `json:"test"`
	// Seconds is how long no transaction ended because of the limit; 0 if unknown or never.
	Seconds float64 `json:"seconds,omitempty"`
	// Share is how much of the clients' time it explains, from 0 to 1.
	Share float64 `json:"share"`
	// Causes explain the finding, the largest share first. Without a known cause it is empty.
	Causes []CauseFinding `json:"causes,omitempty"`
	// Unexplained is set if causes of the limit are declared, but none of them was found.
	Unexplained bool `json:"-"`
}

// Title names the limit, and whose it is.
func (f *LimitFinding) Title() string {
	switch {
	case f.Of != "" && f.Limit == cause.ProxyQueue:
		return "queue of " + f.Of
	case f.Of != "" && f.Limit == cause.ProxyThread:
		return "one thread of " + f.Of
	case f.Of != "" && (f.Limit == cause.ProcessCPU || f.Limit == cause.ToolCPU):
		return "CPU of " + f.Of
	case f.Of != "" && f.Limit == cause.SharedCPU:
		return "CPU, used mostly by " + f.Of
	}
	return string(f.Limit)
}

// Advice is the test of the finding: that of its first cause, since it says more. Where other programs cost the time,
// the machine comes first.
func (f *LimitFinding) Advice() string {
	if len(f.Causes) > 0 && f.Limit == cause.Neighbours {
		return f.Test + "; then " + f.Causes[0].Test
	}
	if len(f.Causes) > 0 {
		return f.Causes[0].Test
	}
	return f.Test
}

// provenWeight makes a finding that the tool's own output shows count twice.
const provenWeight = 2

// weight is the share of the finding, more if the tool's own output shows it.
func (f *LimitFinding) weight() float64 {
	if f.Seconds > 0 {
		return provenWeight * f.Share
	}
	return f.Share
}

// CauseFinding is a cause of a limit with its evidence.
type CauseFinding struct {
	Cause string `json:"cause"`
	// Of is the statement, table, setting or server that it concerns; empty for other causes.
	Of string `json:"of,omitempty"`
	// Evidence is a sentence with the numbers, Test what would confirm the cause.
	Evidence string `json:"evidence"`
	Test     string `json:"test"`
	// Share is how much of the clients' time it explains, from 0 to 1.
	Share float64 `json:"share"`
}

// Missing is evidence that is missing, and how to get it the next time; empty if that is not known.
type Missing struct {
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"`
}

// Unexplained is the clients' time that no evidence explains.
type Unexplained struct {
	// Share is of the clients' time, from 0 to 1.
	Share float64 `json:"share"`
	// Evidence is where the clients were then, and what may be the reason.
	Evidence string `json:"evidence"`

	// outside is the part without a statement in a server and without work of the tool, inside the part in statements
	// whose threads neither had a core nor waited for one.
	outside, inside float64
	// texts are the parts of Evidence about them.
	texts map[cause.Limit]string
}

// Verdict is the result of the search for what limited a run.
type Verdict struct {
	// Findings are ranked by how much they explain; empty if nothing is known to have limited the run.
	Findings []LimitFinding `json:"findings,omitempty"`
	// Unexplained is absent if it is less than what a finding must explain, or if it is unknown how the clients spent
	// their time.
	Unexplained *Unexplained `json:"unexplained,omitempty"`
	// Division is where the time of a transaction went; absent if the sessions of the servers are unknown.
	Division *Division `json:"division,omitempty"`
	// Unlimited is set if the run reached its configured rate.
	Unlimited string `json:"unlimited,omitempty"`
	// Behind are replicas that did not keep up. They do not slow the clients.
	Behind []string `json:"behind,omitempty"`
	// Missing is the evidence without which some limits can't be found.
	Missing []Missing `json:"missing,omitempty"`
}

// First returns the limit that explains most of the clients' time.
func (v *Verdict) First() cause.Limit {
	switch {
	case v == nil || v.MostlyUnknown():
		return cause.Unknown
	case len(v.Findings) > 0:
		return v.Findings[0].Limit
	case v.Unlimited != "":
		return cause.Unlimited
	}
	return cause.Unknown
}

// MostlyUnknown reports whether more of the clients' time is unexplained than any finding explains.
func (v *Verdict) MostlyUnknown() bool {
	return v.Unexplained != nil && (len(v.Findings) == 0 || v.Unexplained.Share > v.Findings[0].Share)
}

// User is who used most of the CPU of the tool's machine, by the findings about it.
type User int

// The users of a CPU.
const (
	NoUser User = iota // no finding is about it
	ByTool
	ByServers
	ByOthers
)

// CPUUser returns who used most of the CPU of the tool's machine if a finding is about it. Whatever else judges how busy
// that machine was, such as the trust in a run's numbers, asks here.
func (v *Verdict) CPUUser(tool string) User {
	if v == nil {
		return NoUser
	}
	for i := range v.Findings {
		switch f := &v.Findings[i]; f.Limit {
		case cause.ToolCPU, cause.GeneratorCPU, cause.OneCore:
			return ByTool
		case cause.SharedCPU:
			if f.Of == tool {
				return ByTool
			}
			if f.Of != "" {
				return ByServers
			}
		case cause.Neighbours:
			return ByOthers
		}
	}
	return NoUser
}
