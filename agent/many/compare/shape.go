package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/analysis"
	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
	"github.com/benchwatch/benchwatch/agent/run/review"
)

// ShapeKind is how the intervals of two runs differ.
type ShapeKind string

const (
	// Even: slow and fast intervals are lower or higher by as much.
	Even ShapeKind = "even"
	// Uneven: slow and fast intervals differ by different amounts.
	Uneven ShapeKind = "uneven"
	// Stalls: some intervals have almost no throughput, and they cause the difference.
	Stalls ShapeKind = "stalls"
	// SlowPhases: some intervals are much slower, and they cause the difference.
	SlowPhases ShapeKind = "slow phases"
	// Drift: the throughput changes more over one run than over the other.
	Drift ShapeKind = "drift"
)

// Shape compares the intervals of two single runs. Lists have the baseline's value first.
type Shape struct {
	// Kind is empty if the means are alike.
	Kind ShapeKind `json:"kind,omitempty"`
	// Typical is the ratio of the medians of the intervals. TypicalP is the probability of a
	// difference of their ranks at least as large if there were none.
	Typical  series.Optional[float64] `json:"typical,omitzero"`
	TypicalP series.Optional[float64] `json:"typical_p,omitzero"`
	// Halves are the ratios of the means of the slower and of the faster half of the intervals.
	Halves []float64 `json:"halves"`
	// Slow are the stalls and slow phases of both runs.
	Slow []SlowIntervals `json:"slow"`
	// Others is the ratio of the means of the intervals that are not slow. They are alike if it is
	// within 5 % of 1 with 99 % confidence.
	Others      series.Optional[float64] `json:"others,omitzero"`
	OthersAlike bool                     `json:"others_alike,omitempty"`
	// Drift is the change of the mean from the first to the last quarter of each run, as a share.
	Drift []float64 `json:"drift"`
}

// SlowIntervals are the intervals of a run far below its typical one, or in phases at a lower level.
type SlowIntervals struct {
	Seconds   float64 `json:"seconds"`
	OfSeconds float64 `json:"of_seconds"`
	// Times is the number of stretches of consecutive slow intervals.
	Times          int     `json:"times"`
	LongestSeconds float64 `json:"longest_seconds"`
	// FromSeconds is where the longest stretch begins.
	FromSeconds float64 `json:"from_seconds"`
	// Lost is the share of the run's throughput lost in them.
	Lost float64 `json:"lost"`
	// Level is their mean as a share of the typical interval: near 0 if the run stands still.
	Level float64 `json:"level"`
}

const (
	// leastDifference is the difference, as a share of the mean, above which the reason is determined.
	leastDifference = 0.01
	// standsStill is the level below which slow intervals are stalls.
	standsStill = 0.1
	// leastLost is the share of a run's throughput that must be lost in stalls; the other run must
	// have lost at most lesserLost of that.
	leastLost, lesserLost = 0.02, 0.25
	// leastDrift is the smallest change over a run that can explain a difference.
	leastDrift = 0.05
)

// newShape returns nil if either run has too few intervals.
func newShape(before, after review.IntervalValues) *Shape {
	runs := [2]review.IntervalValues{before, after}
	if min(len(before.Values), len(after.Values)) < review.FewIntervals {
		return nil
	}
	s := &Shape{Slow: make([]SlowIntervals, 2), Drift: make([]float64, 2)}
	bound := analysis.SlowBound(before.Values, after.Values)
	typical := [2]float64{series.Median(before.Values), series.Median(after.Values)}
	mean := [2]float64{NewSpread(before.Values).Mean, NewSpread(after.Values).Mean}
	if min(typical[0], typical[1]) <= 0 {
		return nil
	}
	difference := mean[1]/mean[0] - 1
	var others, halves [2][]float64
	for i, w := range runs {
		var slow analysis.Slow
		slow, others[i] = splitSlow(w.Values, typical[i]*bound, math.Abs(difference) >= leastDifference)
		s.Slow[i] = SlowIntervals{
			Seconds: float64(slow.Count) * w.Seconds, OfSeconds: float64(len(w.Values)) * w.Seconds, Times: slow.Times,
			LongestSeconds: float64(slow.Longest) * w.Seconds, FromSeconds: float64(slow.From) * w.Seconds,
			Lost: slow.Lost, Level: slow.Level,
		}
		sorted := slices.Sorted(slices.Values(w.Values))
		for _, half := range [][]float64{sorted[:len(sorted)/2], sorted[len(sorted)/2:]} {
			halves[i] = append(halves[i], NewSpread(half).Mean)
		}
		quarter := len(w.Values) / 4
		s.Drift[i] = ratio(NewSpread(w.Values[:quarter]).Mean, NewSpread(w.Values[len(w.Values)-quarter:]).Mean) - 1
	}
	s.Typical = series.Some(typical[1] / typical[0])
	for i, before := range halves[0] {
		s.Halves = append(s.Halves, ratio(before, halves[1][i]))
	}
	if sides, ok := compareTypical(before, after); ok {
		s.TypicalP = series.Some(sides.Both())
	}
	a, okA := analysis.NewMean(others[0], before.Seconds)
	b, okB := analysis.NewMean(others[1], after.Seconds)
	if len(others[0]) > 0 && len(others[1]) > 0 {
		s.Others = series.Some(NewSpread(others[1]).Mean / NewSpread(others[0]).Mean)
	}
	if okA && okB {
		low, high, ok := analysis.RatioBounds(a, b, alphaWithin/2)
		s.OthersAlike = ok && low >= 1-alikeWithin && high <= 1+alikeWithin
	}
	s.Kind = s.kind(difference)
	return s
}

// ratio returns the ratio of two rates, 1 if the first is 0.
func ratio(before, after float64) float64 {
	if before == 0 {
		return 1
	}
	return after / before
}

// splitSlow sums up the slow intervals and returns the others: those below a bound or, if wanted and
// more is lost in them, slow phases.
func splitSlow(values []float64, bound float64, wantPhases bool) (slow analysis.Slow, others []float64) {
	split := func(isSlow []bool) (analysis.Slow, []float64) {
		var others []float64
		for i, v := range values {
			if !isSlow[i] {
				others = append(others, v)
			}
		}
		return analysis.SumSlow(values, isSlow, series.Median(others)), others
	}
	slow, others = split(analysis.Below(values, bound))
	if !wantPhases {
		return slow, others
	}
	if phases, ok := analysis.SlowPhases(values); ok {
		if longer, rest := split(phases); longer.Lost > slow.Lost {
			return longer, rest
		}
	}
	return slow, others
}

// kind returns the larger cause of a difference of the means.
func (s *Shape) kind(difference float64) ShapeKind {
	lost := s.Slow[0].Lost - s.Slow[1].Lost
	drift := s.Drift[1] - s.Drift[0]
	switch {
	case math.Abs(difference) < leastDifference:
		return ""
	case lost*difference > 0 && math.Abs(lost) >= math.Abs(difference)/2:
		if s.slower().Level < standsStill {
			return Stalls
		}
		return SlowPhases
	case math.Abs(drift) >= max(leastDrift, math.Abs(difference)):
		return Drift
	case math.Abs(s.Halves[1]-s.Halves[0]) > math.Abs(difference)/2:
		return Uneven
	}
	return Even
}

// slower returns the slow intervals of the run that lost more in them.
func (s *Shape) slower() SlowIntervals {
	if s.Slow[0].Lost > s.Slow[1].Lost {
		return s.Slow[0]
	}
	return s.Slow[1]
}

// oneSided reports whether only one of the runs has stalls or slow phases worth a verdict, and they
// cause the difference.
func (s *Shape) oneSided() bool {
	if s == nil || s.Kind != Stalls && s.Kind != SlowPhases {
		return false
	}
	most, least := max(s.Slow[0].Lost, s.Slow[1].Lost), min(s.Slow[0].Lost, s.Slow[1].Lost)
	return most >= leastLost && least <= most*lesserLost
}

// oneSidedStalls is the reason for a verdict without a test.
const oneSidedStalls = "only one of these two runs has stalls or slow phases, too few to know whether they recur"

// stalls reports whether the difference is caused by stalls in only one of the runs.
func (s *Sample) stalls() bool {
	return s.Ratio.Known && s.Shape.oneSided() && (s.Ratio.Value < 1) == (s.Shape.Slow[1].Lost > s.Shape.Slow[0].Lost)
}

// shapeText describes how two single runs differ; empty if not proven.
func (s *Sample) shapeText() string {
	if s.Shape == nil || !s.Ratio.Known {
		return ""
	}
	isExplained := s.Verdict.isProven() || s.Verdict == RunsStall
	if s.Shape.Kind != "" && isExplained {
		return s.Shape.String()
	}
	if p := s.Shape.TypicalP; !isExplained && p.Known && p.Value <= alphaWithin/2 &&
		math.Abs(s.Shape.Typical.Value-1) >= leastDifference {
		return fmt.Sprintf("the typical interval differs by %+.1f %% (%s), the mean not provably",
			100*(s.Shape.Typical.Value-1), probability(p.Value))
	}
	return ""
}

// String describes the difference: "48 s of 600 stand still, 12 times; the other seconds are alike".
func (s *Shape) String() string {
	var text string
	switch slow := s.slower(); {
	case s.Kind == Even:
		return "evenly over the run"
	case s.Kind == Uneven:
		return fmt.Sprintf("the slower half of the seconds by %+.1f %%, the faster half by %+.1f %%",
			100*(s.Halves[0]-1), 100*(s.Halves[1]-1))
	case s.Kind == Drift:
		i := 0
		if math.Abs(s.Drift[1]) > math.Abs(s.Drift[0]) {
			i = 1
		}
		return fmt.Sprintf("%s changes by %+.0f %% from its first to its last quarter",
			[]string{"the baseline", "the run"}[i], 100*s.Drift[i])
	case s.Kind == "":
		return ""
	case slow.Times == 1 && s.Kind == Stalls:
		text = "one stall of at least " + seconds(slow.LongestSeconds) + " at " + table.Clock(slow.FromSeconds)
	case slow.Times == 1 && slow.FromSeconds+slow.LongestSeconds == slow.OfSeconds:
		text = fmt.Sprintf("from %s on at %s", table.Clock(slow.FromSeconds), table.Share(slow.Level))
	case slow.Times == 1:
		text = fmt.Sprintf("one slow phase of %s at %s, from %s on",
			seconds(slow.LongestSeconds), table.Share(slow.Level), table.Clock(slow.FromSeconds))
	case s.Kind == Stalls:
		text = fmt.Sprintf("%s of %s stand still, %d times", seconds(slow.Seconds), seconds(slow.OfSeconds), slow.Times)
	default:
		text = fmt.Sprintf("%s of %s run at %s, %d times", seconds(slow.Seconds),
			seconds(slow.OfSeconds), table.Share(slow.Level), slow.Times)
	}
	if s.Slow[0].Lost > s.Slow[1].Lost {
		text += " in the baseline"
	}
	switch {
	case s.OthersAlike:
		text += "; the other seconds are alike"
	case s.Others.Known:
		text += fmt.Sprintf("; the other seconds differ by %+.1f %%", 100*(s.Others.Value-1))
	}
	return text
}

func seconds(v float64) string { return fmt.Sprintf("%.0f s", v) }
