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
	v.nameUnexplained(views)
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

// unnamed is a part of the time that no evidence explains, with the finding that it becomes if a cause explains most of
// it: a cause needs a finding that it explains.
type unnamed struct {
	limit          cause.Limit
	of             func(*Unexplained) *float64
	evidence, test string
}

var unnameds = []unnamed{
	{cause.Outside, func(u *Unexplained) *float64 { return &u.outside },
		"clients spent %s of their time outside the servers, and the tool's threads neither used nor waited for a CPU",
		outsideTest},
	{cause.State, func(u *Unexplained) *float64 { return &u.inside },
		"clients waited within statements for %s of their time: the threads of the servers neither used nor waited for a CPU, and the servers do not say what for",
		"find in the server's documentation what sessions in this state wait for"},
}

const (
	// mostUnnamed is the part of such a time that a cause must explain, leastUnnamed the share of the clients' time that it
	// must have: it is what the measured times leave over.
	mostUnnamed, leastUnnamed = 0.5, 0.25
)

// nameUnexplained makes findings of unexplained time if a cause explains most of it.
func (v *Verdict) nameUnexplained(views []cause.View) {
	for _, part := range unnameds {
		if v.Unexplained == nil {
			return
		}
		share := *part.of(v.Unexplained)
		isNamed := slices.ContainsFunc(v.Findings, func(f LimitFinding) bool { return f.Limit == part.limit })
		if share < leastUnnamed || isNamed || !isExplained(views, part.limit, share) {
			continue
		}
		f := finding(rounded(share), part.test, part.evidence, table.Share(share))
		f.Limit = part.limit
		v.Findings = append(v.Findings, f)
		slices.SortStableFunc(v.Findings, func(a, b LimitFinding) int { return cmp.Compare(b.weight(), a.weight()) })
		v.Findings = v.Findings[:min(len(v.Findings), mostFindings)]
		u := v.Unexplained
		*part.of(u) = 0
		u.Evidence = strings.Join(slices.DeleteFunc(strings.Split(u.Evidence, "; "), func(text string) bool { return text == u.texts[part.limit] }), "; ")
		if u.Share = rounded(u.Share - share); u.Share < LeastShare {
			v.Unexplained = nil
		}
	}
}

// isExplained reports whether a cause explains most of a share of the clients' time.
func isExplained(views []cause.View, limit cause.Limit, share float64) bool {
	for _, view := range views {
		view.Limit, view.Share = limit, share
		for _, c := range causesOf(&view) {
			if c.Share >= mostUnnamed*share {
				return true
			}
		}
	}
	return false
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
