package compare

import (
	"fmt"

	"github.com/benchwatch/benchwatch/agent/base/series"
	"github.com/benchwatch/benchwatch/agent/model/table"
)

// Verdict is the significance of a difference.
type Verdict string

const (
	// Different: repeated runs differ by more than noise, at the 5 % level.
	Different Verdict = "different"
	// NotProven: the difference of repeated runs may be noise.
	NotProven Verdict = "not proven"
	// TooFew: with so few runs the test can't distinguish any difference from noise.
	TooFew Verdict = "too few runs"
	// RunsDiffer: two single runs differ by more than the noise within them, at the 1 % level.
	// Another pair may not.
	RunsDiffer Verdict = "these runs differ"
	// RunsApart: two single runs have too few intervals for a test, for example because they grow for minutes, but the
	// level of one run is always above the other's.
	RunsApart Verdict = "these runs do not overlap"
	// RunsStall: one of two single runs has stalls or slow phases that the other lacks, and they
	// cause the difference. They are too few for a test of the means.
	RunsStall Verdict = "one of these runs stalls"
	// RunsAlike: the ratio of two single runs is within 5 % of 1, with 99 % confidence.
	RunsAlike Verdict = "these runs are alike"
	// RunsUnclear: two single runs prove neither that they differ nor that they are alike.
	RunsUnclear Verdict = "these runs prove nothing"
	// TooShort: two single runs have too few intervals, given how strongly these depend on each
	// other.
	TooShort Verdict = "too short to tell"
	// Single: a group has only one run, with unknown noise.
	Single Verdict = "one run"
	// Incomparable: the groups' tools count different things.
	Incomparable Verdict = "not comparable"
)

// isProven reports whether the runs are proven to differ.
func (v Verdict) isProven() bool { return v == Different || v == RunsDiffer || v == RunsApart }

// setVerdicts compares each group's sample with the first one's.
func (l *Line) setVerdicts() {
	base := l.Samples[0]
	if base.N == 0 {
		return
	}
	for i := 1; i < len(l.Samples); i++ {
		s := &l.Samples[i]
		if s.N == 0 {
			continue
		}
		if l.isIncomparable {
			s.Verdict, s.Reason = Incomparable, differentTransactions
			continue
		}
		if base.Median != 0 {
			s.Ratio = series.Some(s.Median / base.Median)
		}
		l.conclude(i, s)
	}
}

// conclude sets the verdict for group i's difference.
func (l *Line) conclude(i int, s *Sample) {
	e := l.evidence(i, 1)
	s.Verdict, s.Reason = e.verdict, e.reason
	if e.isTested() {
		s.P = series.Some(e.sides.Both())
	}
	if e.high > 0 {
		s.Low, s.High = series.Some(e.low), series.Some(e.high)
	}
	if !l.isThroughput || l.Samples[0].N != 1 || s.N != 1 {
		return
	}
	s.Shape = newShape(l.intervals[0], l.intervals[i])
	undecided := e.verdict == RunsUnclear || e.verdict == TooShort
	if undecided && s.stalls() {
		s.Verdict, s.Reason = RunsStall, oneSidedStalls
	}
}

// proof returns how far the difference is proven, for a sentence, and how the seconds of two single
// runs differ.
func (s *Sample) proof() string {
	_, text := s.words()
	if shape := s.shapeText(); shape != "" {
		text += ": " + shape
	}
	return text
}

// words returns how far a difference is proven: after the change in a table, and in a sentence.
func (s *Sample) words() (cell, sentence string) {
	p := "(" + probability(s.P.Value) + ")" // only of verdicts by a test
	switch s.Verdict {
	case Incomparable:
		return "", "not comparable"
	case Different:
		return " " + p, "proven " + p
	case NotProven:
		return ", not proven " + p, "not proven " + p
	case TooFew:
		return ", too few runs " + p, "not proven, too few runs " + p
	case RunsDiffer:
		return fmt.Sprintf(" (%s, these runs)", probability(s.P.Value)), "proven for these two runs " + p
	case RunsApart:
		return " (no overlap of these runs)", "proven for these two runs, which do not overlap"
	case RunsStall:
		return fmt.Sprintf(" (%s: %s)", s.Shape.Kind, s.Shape), "not proven to recur"
	case RunsAlike:
		return " (alike, these runs)", "these runs are alike"
	case RunsUnclear:
		if s.Reason != "" {
			return ", not proven (" + s.Reason + ")", "not proven: " + s.Reason
		}
		return fmt.Sprintf(", not proven (%s, these runs)", probability(s.P.Value)), "not proven " + p
	case TooShort:
		return ", too short to tell", "not proven, too short to tell"
	}
	return ", one run, may be noise", "not proven"
}

// manyTimes is the ratio above which a difference is not printed as a percentage.
const manyTimes = 10

// difference formats the difference with its significance. It never returns a bare percentage if
// the significance is unknown.
func (s *Sample) difference() string {
	if !s.Ratio.Known {
		return ""
	}
	change := fmt.Sprintf("%+.1f %%", (s.Ratio.Value-1)*100)
	if s.Ratio.Value >= manyTimes {
		change = "×" + table.Rounded(s.Ratio.Value)
	}
	words, _ := s.words()
	return change + words
}

// probability prints a p value.
func probability(p float64) string {
	if p < 0.001 {
		return "p<0.001"
	}
	return fmt.Sprintf("p=%.3f", p)
}
