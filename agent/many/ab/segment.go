package ab

import (
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

// interval is what the tool reported of one interval of the run, in seconds of its axis.
type interval struct{ from, to, value float64 }

// segment is a block of a toggled run. It is switched if the block before had another value.
type segment struct {
	from, to   float64
	isSwitched bool
}

// valueOf returns the mean of the intervals within a segment without its first seconds; unknown
// without any.
func (s *segment) valueOf(intervals []interval, cut float64) float64 {
	sum, length := 0.0, 0.0
	for _, v := range intervals {
		if v.from >= s.from+cut-slack && v.to <= s.to+slack && series.IsKnown(v.value) {
			sum += v.value * (v.to - v.from)
			length += v.to - v.from
		}
	}
	if length == 0 {
		return series.Unknown()
	}
	return sum / length
}

// slack is how far the axis of the tool's intervals may be off, in seconds.
const slack = 0.2

const (
	// fewestSwitches are needed to see what the seconds after a switch have in common.
	fewestSwitches = 4
	// A second counts as settled if it differs from its block by at most settledErrors standard errors, or by at most
	// the share settledShare.
	settledErrors, settledShare = 3, 0.005
)

// carryOver returns how many seconds after a switch differ from the rest of their block, and the largest difference as
// a share. It counts up to the last second whose mean over all switches is off by more than chance explains, at most
// half of a block; at least one second, since the switch is within a second.
func carryOver(segments []segment, intervals []interval, every float64) (seconds, worst float64) {
	seconds = 1
	half := int(every / 2)
	for lag := range half {
		var deviations []float64
		for i := range segments {
			s := &segments[i]
			if !s.isSwitched {
				continue
			}
			settled := s.valueOf(intervals, every/2)
			at := segment{from: s.from + float64(lag), to: s.from + float64(lag) + 1 + slack}
			if v := at.valueOf(intervals, 0); series.IsKnown(v) && settled > 0 {
				deviations = append(deviations, v/settled-1)
			}
		}
		if len(deviations) < fewestSwitches {
			continue
		}
		mean, squares, n := 0.0, 0.0, float64(len(deviations))
		for _, d := range deviations {
			mean += d / n
		}
		for _, d := range deviations {
			squares += (d - mean) * (d - mean)
		}
		if math.Abs(mean) > max(settledShare, settledErrors*math.Sqrt(squares/(n-1)/n)) {
			seconds = float64(lag) + 1
			if math.Abs(mean) > math.Abs(worst) {
				worst = mean
			}
		}
	}
	return seconds, worst
}

// usualLength returns the usual length of the intervals.
func usualLength(intervals []interval) float64 {
	var all []float64
	for _, v := range intervals {
		all = append(all, v.to-v.from)
	}
	slices.Sort(all)
	if len(all) == 0 {
		return series.Unknown()
	}
	return all[len(all)/2]
}
