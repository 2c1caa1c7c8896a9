package ab

import (
	"errors"
	"maps"
	"strings"

	"github.com/benchwatch/benchwatch/agent/many/history"
	"github.com/benchwatch/benchwatch/agent/many/sweep"
	"github.com/benchwatch/benchwatch/agent/run/rundir"
)

// HistoryFacts are the facts that separate ratios into series, in addition to the facts of runs.
var HistoryFacts = []string{"measure", "arm"}

// History returns the ratios of this user's comparisons in a data directory as values of a trend, oldest
// first; wanted selects by the facts of the runs. The error names the comparisons that can't be read.
func History(dataDir string, wanted func(*rundir.Meta) bool) (all []history.TrendRun, err error) {
	ids, err := sweep.List(dataDir)
	if err != nil {
		return nil, err
	}
	var damaged []error
	for _, id := range ids {
		s, err := sweep.Load(dataDir, id)
		if errors.Is(err, rundir.ErrForeign) {
			continue
		}
		var p *Plan
		if err == nil {
			p, err = PlanOf(s)
		}
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		if p == nil {
			continue // a sweep
		}
		meta := metaOf(s, dataDir)
		if !wanted(&meta) {
			continue
		}
		for _, one := range p.Compare(Blocks(s), p.Measure).Arms {
			if !one.Ratio.Known {
				continue
			}
			facts := map[string]string{"measure": p.Measure, "arm": one.Arm}
			for _, f := range meta.Facts() {
				facts[f.Name] = f.Value
			}
			for i := range p.Arms {
				_, values, _ := strings.Cut(p.Arms[i].Title(), " ")
				facts[p.Arms[i].Name] = values
			}
			all = append(all, history.TrendRun{ID: s.ID, StartedAt: s.CreatedAt,
				Value: one.Ratio.Value, Low: one.Low, High: one.High, Facts: facts})
		}
	}
	return all, errors.Join(damaged...)
}

// metaOf returns the facts that the runs of a comparison have in common.
func metaOf(s *sweep.Sweep, dataDir string) rundir.Meta {
	meta := rundir.Meta{}
	for i := range s.Steps {
		if m, err := rundir.At(dataDir, s.Steps[i].RunID).Load(); err == nil && s.Steps[i].RunID != "" {
			meta = m
			break
		}
	}
	meta.StartedAt, meta.Labels = s.CreatedAt, maps.Clone(s.Labels)
	return meta
}
