package analysis

import (
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/base/series"
)

const (
	// leastDips is the least number of dips whose distances can show a period.
	leastDips = 5
	// dipDepth is the share of the level by which a dip is at least below it, dipNoise
	// the number of deviations of the other values.
	dipDepth, dipNoise = 0.15, 4
	// periodSpread is the share of the period by which most distances, the share periodMost, may differ from it. The
	// distances of random dips are exponential, and a tenth of them would be within this spread.
	periodSpread, periodMost = 0.15, 0.8
)

// Dips are falls of a level that come back after about the same time.
type Dips struct {
	// Period is their distance, in values, Count how many there are.
	Period float64
	Count  int
	// Depth is the median share of the level by which they are below it.
	Depth float64
}

// PeriodicDips finds dips at equal distances in values around one level, such as the dips of a
// server that writes a checkpoint every half a minute; not ok if there are none.
func PeriodicDips(values []float64) (d Dips, ok bool) {
	if len(values) < 4*leastDips {
		return Dips{}, false
	}
	level := series.Median(values)
	distances := make([]float64, len(values))
	for i, v := range values {
		distances[i] = math.Abs(v - level)
	}
	// The median absolute deviation of normal values is 0.6745 of their deviation.
	limit := level - max(dipDepth*level, dipNoise*series.Median(distances)/0.6745)
	var starts, depths []float64
	for i := 0; i < len(values); i++ {
		if values[i] >= limit {
			continue
		}
		lowest := values[i]
		starts = append(starts, float64(i))
		for i+1 < len(values) && values[i+1] < limit {
			i++
			lowest = min(lowest, values[i])
		}
		depths = append(depths, 1-lowest/level)
	}
	if len(starts) < leastDips {
		return Dips{}, false
	}
	gaps := make([]float64, len(starts)-1)
	for i := range gaps {
		gaps[i] = starts[i+1] - starts[i]
	}
	period := series.Median(slices.Clone(gaps))
	near := 0
	for _, g := range gaps {
		if math.Abs(g-period) <= max(1, periodSpread*period) {
			near++
		}
	}
	// With a short period, distances that differ by one value are not equal.
	if period < 4 || float64(near) < periodMost*float64(len(gaps)) {
		return Dips{}, false
	}
	return Dips{Period: period, Count: len(starts), Depth: series.Median(depths)}, true
}
