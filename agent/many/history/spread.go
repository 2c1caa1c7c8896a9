package history

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/many/compare"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

const (
	// wide is the factor between runs of a level from which on it is said that small changes can't be seen.
	wide = 1.5
	// disturbing is by how much of the CPU other programs must differ between runs to disturb them.
	disturbing = 0.1
	// around is how many runs before and after a change are read for what other programs took, newest how many of a series
	// without changes.
	around, newest = 4, 12
)

// othersIn returns what other programs took in the runs of a series from begin to end, where that was recorded.
func (s *TrendSeries) othersIn(begin, end int, others func(id string) float64) compare.Spread {
	if others == nil {
		return compare.Spread{}
	}
	var all []float64
	for _, r := range s.Runs[max(0, begin):min(end, len(s.Runs))] {
		all = append(all, others(r.ID))
	}
	return compare.NewSpread(all)
}

// changedOthers returns what other programs took before and after a change, if that differs.
func (s *TrendSeries) changedOthers(at int, others func(id string) float64) []FactChange {
	before, after := s.othersIn(at-around, at, others), s.othersIn(at, at+around, others)
	if before.N == 0 || after.N == 0 || max(before.Median-after.Median, after.Median-before.Median) < disturbing {
		return nil
	}
	return []FactChange{{Name: "CPU taken by other programs", Before: table.Share(before.Median), After: table.Share(after.Median)}}
}

// addSpread adds how far the runs of a level are apart, and what disturbed them if that is far.
func (s *TrendSeries) addSpread(others func(id string) float64) {
	for _, l := range s.Levels {
		values := make([]float64, 0, l.Runs)
		for _, r := range s.Runs[l.Begin:l.End] {
			values = append(values, r.Value)
		}
		if all := compare.NewSpread(values); all.N > 1 && all.Min > 0 {
			s.Factor = max(s.Factor, all.Max/all.Min)
		}
	}
	if s.Factor < wide {
		return
	}
	taken := s.othersIn(len(s.Runs)-newest, len(s.Runs), others)
	if taken.N > 1 && taken.Max-taken.Min >= disturbing && series.IsKnown(taken.Max) {
		s.Disturbed = fmt.Sprintf("other programs took %s to %s of the CPU of the tool's machine", table.Percent.Format(taken.Min), table.Share(taken.Max))
	}
}

// said is what disturbed the runs, before everything else.
func (s *TrendSeries) said() string {
	if s.Disturbed == "" {
		return ""
	}
	return s.Disturbed + ", which differs between the runs; "
}

// unseen is a remark about a series without a change whose runs are far apart.
func (s *TrendSeries) unseen() string {
	if s.Factor < wide {
		return ""
	}
	return fmt.Sprintf(" found, as runs differ by a factor of %.2g", s.Factor)
}
