// Package limits finds what limited a run, from evidence that its caller collected. It does no I/O.
package limits

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/cause"
)

const (
	// LeastShare is what a finding must explain of the clients' time.
	LeastShare = 0.15
	// whole is a share that leaves nothing to explain.
	whole = 0.9
	// mostlyBusy is the share of the time above which a machine without a free core is worth a mention.
	mostlyBusy = 0.5
	// mostFindings bounds the list.
	mostFindings = 5
)

// Find ranks what limited a run by how much of the clients' time it explains. A client is either in a server, running
// or waiting for something there, or outside, in the tool or on the network. The shares of the time come first, then a
// finding for each share that is large enough, then what follows from the findings together.
func Find(e *Evidence) Verdict {
	e = e.withEnoughSamples()
	f := &finder{shares: newShares(e)}
	apply(f, runRules, e)
	f.addStalls()
	apply(f, poolRules, f.servers...)
	f.addWaits()
	apply(f, sessionRules, f.shares)
	apply(f, serverRules, f.servers...)
	apply(f, machineRules, f.machines...)
	apply(f, linkRules, f.machines...)
	apply(f, proxyRules, f.proxies...)
	apply(f, pathRules, f.shares)
	f.v.Division = f.divide()
	f.v.Behind = behind(e.Servers)
	f.addOtherLoad()
	f.v.Missing = e.missing()
	f.addClients()
	f.compareRate()
	f.v.Unexplained = f.unexplained()
	f.v.Findings = ranked(f.v.Findings)
	if len(f.v.Findings) > 0 && f.v.Findings[0].Share >= whole {
		f.v.Missing = nil
	}
	if len(f.v.Findings) > mostFindings {
		f.v.Findings = f.v.Findings[:mostFindings]
	}
	return f.v
}

// finder collects the findings and concludes from them.
type finder struct {
	*shares
	v Verdict
}

// apply applies the rules to one thing after the other.
func apply[T any](f *finder, rules []rule[T], to ...*T) {
	for _, one := range to {
		for _, r := range rules {
			f.add(r.limit, r.find(one))
		}
	}
}

// add adds a finding if its share is large enough.
func (f *finder) add(limit cause.Limit, finding LimitFinding) {
	if finding.Share >= LeastShare {
		finding.Limit, finding.Share = limit, rounded(finding.Share)
		f.v.Findings = append(f.v.Findings, finding)
	}
}

// explained is the share of the clients' time that the findings explain together.
func (f *finder) explained() float64 {
	sum := 0.0
	for _, one := range f.v.Findings {
		sum += one.Share
	}
	return min(1, sum)
}

// finding returns a finding without its limit.
func finding(share float64, test, format string, args ...any) LimitFinding {
	return LimitFinding{Share: share, Test: test, Evidence: fmt.Sprintf(format, args...)}
}

// certainly is the share of a limit that the tool's own output proves.
func certainly(proven bool) float64 {
	if proven {
		return 1
	}
	return 0
}

// ranked orders the findings by their share, but a cause before its effect unless the effect is much
// larger: commits that wait for a cluster while flow control holds it back.
func ranked(all []LimitFinding) []LimitFinding {
	slices.SortStableFunc(all, func(a, b LimitFinding) int { return cmp.Compare(b.weight(), a.weight()) })
	of := func(limit cause.Limit) int {
		return slices.IndexFunc(all, func(one LimitFinding) bool { return one.Limit == limit })
	}
	effect, origin := of(cause.Replication), of(cause.FlowControl)
	if effect < 0 || origin < effect || all[origin].Share < all[effect].Share/2 {
		return all
	}
	moved := all[origin]
	return slices.Insert(slices.Delete(all, origin, origin+1), effect, moved)
}
