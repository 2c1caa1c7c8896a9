package limits

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

const (
	// leastPart is the part of a finding that a cause must explain.
	leastPart = 0.25
	// mostCauses bounds the causes of a finding.
	mostCauses = 3
)

// Explain adds to each finding the causes that the views of the run and of its servers show. A view without a target
// is of the run.
func (v *Verdict) Explain(views []cause.View) {
	var engines []string
	for i := range views {
		engines = append(engines, views[i].Engine)
	}
	v.nameOutside(views)
	for i := range v.Findings {
		f := &v.Findings[i]
		f.Causes = nil
		for j := range views {
			view := views[j]
			view.Limit, view.Share, view.Of = f.Limit, f.Share, f.Of
			f.Causes = append(f.Causes, causesOf(&view)...)
		}
		slices.SortStableFunc(f.Causes, func(a, b CauseFinding) int {
			return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Cause, b.Cause))
		})
		f.Causes = f.Causes[:min(len(f.Causes), mostCauses)]
		f.Unexplained = len(f.Causes) == 0 && cause.IsExplained(f.Limit, engines)
	}
}

// mostOutside is the part of the time outside that a cause must explain to make a finding of it.
const mostOutside = 0.5

// nameOutside makes a finding of unexplained time outside of the servers if a cause explains most of it: a cause needs a
// finding that it explains.
func (v *Verdict) nameOutside(views []cause.View) {
	u := v.Unexplained
	isNamed := slices.ContainsFunc(v.Findings, func(f LimitFinding) bool { return f.Limit == cause.Outside })
	if u == nil || u.outside < LeastShare || isNamed {
		return
	}
	explained := false
	for _, view := range views {
		view.Limit, view.Share = cause.Outside, u.outside
		for _, c := range causesOf(&view) {
			explained = explained || c.Share >= mostOutside*u.outside
		}
	}
	if !explained {
		return
	}
	f := finding(rounded(u.outside), outsideTest,
		"clients spent %s of their time outside the servers, and the tool's threads neither used nor waited for a CPU",
		table.Share(u.outside))
	f.Limit = cause.Outside
	v.Findings = append(v.Findings, f)
	slices.SortStableFunc(v.Findings, func(a, b LimitFinding) int { return cmp.Compare(b.weight(), a.weight()) })
	v.Findings = v.Findings[:min(len(v.Findings), mostFindings)]
	if u.Share, u.outside = rounded(u.Share-u.outside), 0; u.Share < LeastShare {
		v.Unexplained = nil
	}
}

// causesOf returns the causes of the view's finding that its engine declares.
func causesOf(v *cause.View) (all []CauseFinding) {
	for _, d := range cause.All() {
		if d.Engine != v.Engine || !slices.Contains(d.Of, v.Limit) {
			continue
		}
		found, is := d.Find(v)
		if use := v.CPU; v.Target != "" && (v.Limit == cause.SharedCPU || v.Limit == cause.Neighbours) && use.Tool > 0 {
			found.Part *= use.Servers / (use.Tool + use.Servers)
		}
		if !is || !(found.Part >= leastPart) || !series.IsKnown(v.Share) {
			continue
		}
		all = append(all, CauseFinding{Cause: d.Name, Of: found.Of, Evidence: found.Evidence,
			Test: cmp.Or(found.Test, d.Test), Share: math.Round(min(1, found.Part)*v.Share*1000) / 1000})
	}
	return all
}
