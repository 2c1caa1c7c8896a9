package compare

import (
	"github.com/benchwatch/benchwatch/agent/base/analysis"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

const (
	// alpha is the significance level for repeated runs, the same as benchstat's; alphaWithin is
	// the level for two single runs.
	alpha, alphaWithin = 0.05, 0.01
	// alikeWithin is how far from 1 the ratio of runs may be to call them alike.
	alikeWithin = 0.05
	// longInterval is the length in seconds from which intervals count as independent if they are
	// too few to estimate their dependence: in nine of ten public runs (autocorrelation of seconds
	// below 0.9) the dependence is shorter. fewestLong intervals are required.
	longInterval, fewestLong = 30, 5
)

// evidence is the evidence for a group's difference from the first group.
type evidence struct {
	verdict Verdict
	sides   analysis.Sides // of the difference, if isTested
	isLower bool           // for runs that are apart
	// low and high bound the ratio of two single runs, unless they are 0.
	low, high float64
	n         [2]int // number of runs, or of intervals of single runs
	reason    string // why the runs do not allow a verdict
}

// isTested reports whether there is a p value.
func (e *evidence) isTested() bool {
	return e.verdict != Single && e.verdict != TooShort && e.verdict != RunsApart
}

// evidence compares group i with the first group, whose values are multiplied by factor.
func (l *Line) evidence(i int, factor float64) evidence {
	switch {
	case l.Samples[0].N >= 2 && l.Samples[i].N >= 2:
		return compareRepeats(series.Scaled(l.values[0], factor), l.values[i])
	case l.Samples[0].N != 1 || l.Samples[i].N != 1:
		return evidence{verdict: Single, reason: "one run, may be noise"}
	}
	e := compareWithin(l.intervals[0].Scaled(factor), l.intervals[i])
	// The printed values describe the whole runs. Intervals that differ in the other direction
	// do not prove them.
	isLower := l.values[i][0] < l.values[0][0]*factor
	const contradiction = "the intervals differ in the other direction"
	switch {
	case e.verdict == RunsDiffer && isLower != (e.sides.Lower < e.sides.Higher):
		e.verdict, e.reason = RunsUnclear, contradiction
	case e.verdict == RunsApart && isLower != e.isLower:
		e.verdict, e.reason = TooShort, contradiction
	}
	return e
}

func compareRepeats(before, after []float64) evidence {
	e := evidence{verdict: NotProven, sides: analysis.CompareRanks(before, after), n: [2]int{len(before), len(after)}}
	switch {
	case e.sides.Both() <= alpha:
		e.verdict = Different
	case fewest(len(before), len(after))*2 > alpha && series.Median(before) != series.Median(after):
		e.verdict, e.reason = TooFew, "too few runs"
	}
	return e
}

// fewest is the smallest p value that the one-sided rank test can have.
func fewest(n, m int) float64 {
	p := 1.0
	for i := range m {
		p *= float64(i+1) / float64(n+i+1)
	}
	return p
}

func compareWithin(before, after review.IntervalValues) evidence {
	e := evidence{verdict: RunsUnclear, n: [2]int{len(before.Values), len(after.Values)}}
	a, okA := analysis.NewMean(before.Values, before.Seconds)
	b, okB := analysis.NewMean(after.Values, after.Seconds)
	isShown := false // by the values, if there were no slow waves under their noise
	switch {
	case okA && okB:
		e.sides = analysis.CompareMeans(a, b, 1)
		e.low, e.high, _ = analysis.RatioBounds(a, b, alphaWithin/2)
		isShown = analysis.CompareMeans(a.AsShown(), b.AsShown(), 1).Both() <= alphaWithin
		if typical, ok := compareTypical(before, after); ok && before.IsQuantile {
			e.sides = e.sides.Either(typical)
		}
	case min(before.Seconds, after.Seconds) >= longInterval && min(len(before.Values), len(after.Values)) >= fewestLong:
		e.sides = analysis.CompareRanks(before.Values, after.Values)
	case len(before.Values) == 0 || len(after.Values) == 0:
		return evidence{verdict: Single, reason: "one run, may be noise"}
	default:
		e.tooShort(before, after, "there are too few intervals for their dependence on each other")
		return e
	}
	switch {
	case e.sides.Both() <= alphaWithin:
		e.verdict = RunsDiffer
	case e.low >= 1-alikeWithin && e.high <= 1+alikeWithin && e.high > 0:
		e.verdict = RunsAlike
	case isShown && min(e.sides.Lower, e.sides.Higher) > alphaWithin:
		e.tooShort(before, after, "slow waves, hidden by noise in so few intervals, may cause the difference")
	}
	return e
}

// tooShort concludes that two runs have too few intervals for a test, unless their levels are
// apart.
func (e *evidence) tooShort(before, after review.IntervalValues, reason string) {
	e.verdict, e.reason = TooShort, reason
	if isLower, ok := analysis.Apart(before.Values, after.Values); ok {
		e.verdict, e.reason, e.isLower = RunsApart, "", isLower
	}
}

func compareTypical(before, after review.IntervalValues) (analysis.Sides, bool) {
	return analysis.CompareTypical(before.Values, after.Values, min(before.Seconds, after.Seconds))
}
