package analysis

import (
	"math"
	"slices"

	"github.com/benchwatch/benchwatch/agent/series"
)

const (
	// minBatches is the number of batches below which they prove nothing;
	// maxBatches bounds what a test compares.
	minBatches, maxBatches = 8, 40
	// dependent is the p value of von Neumann's test below which the values are
	// grouped further; clearlyDependent that below which the largest groups are not
	// used either.
	dependent, clearlyDependent = 0.1, 0.01
)

// Batches groups consecutive values until neighbouring groups no longer depend on
// each other, and returns the median of each: 8 to 40 values that can be tested as if
// they were independent. It returns nil if there are too few values for that, or if
// even 8 groups depend on each other, as those of a run with a trend do.
//
// The size is doubled until von Neumann's ratio of the batches is compatible with
// independence (Fishman: Grouping observations in digital simulation, Management
// Science 24, 1978). Medians in place of means let percentiles be grouped without
// averaging them, and leave out single stalls.
func Batches(values []float64) []float64 {
	for size := max(1, (len(values)+maxBatches-1)/maxBatches); len(values)/size >= minBatches; size *= 2 {
		batches, level := medians(values, size), dependent
		if len(values)/(2*size) < minBatches {
			level = clearlyDependent
		}
		if independence(batches) > level {
			return batches
		}
	}
	return nil
}

// minEighth is the number of values below which the median of an eighth of them is not known.
const minEighth = 5

// Eighths returns the least and the greatest median of the eighths of a run, and false if it
// has too few values. It describes values that depend on each other, of which Batches can make
// nothing: over a trend, the medians leave out stalls and the spread of single intervals.
func Eighths(values []float64) (low, high float64, ok bool) {
	size := len(values) / minBatches
	if size < minEighth {
		return 0, 0, false
	}
	all := medians(values, size)
	return slices.Min(all), slices.Max(all), true
}

// medians returns the medians of groups of size values; a smaller last group is left
// out.
func medians(values []float64, size int) []float64 {
	var all []float64
	for group := range slices.Chunk(values, size) {
		if len(group) == size {
			all = append(all, series.Median(group))
		}
	}
	return all
}

// independence is the p value of von Neumann's test: of independent values the mean square of the
// differences of neighbours is twice the variance; it is less if neighbours are alike.
func independence(values []float64) float64 {
	n, m := float64(len(values)), mean(values)
	differences, squares := 0.0, 0.0
	for i, v := range values {
		squares += (v - m) * (v - m)
		if i > 0 {
			d := v - values[i-1]
			differences += d * d
		}
	}
	if squares == 0 {
		return 1
	}
	// 1 - ratio/2 has mean 0 and this variance, nearly normal from 8 values on.
	z := (1 - differences/squares/2) / math.Sqrt((n-2)/(n*n-1))
	return math.Erfc(z/math.Sqrt2) / 2
}
