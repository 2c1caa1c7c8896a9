package series

// PerSecond returns how much a counter grew per second between two readings that
// lie seconds apart. It is unknown if either reading is, if no time passed, or if
// the counter fell: then its server restarted or its counters were flushed.
func PerSecond(before, after, seconds float64) float64 {
	grown := after - before
	if !(grown >= 0) || !(seconds > 0) {
		return Unknown()
	}
	return grown / seconds
}

// Rates returns PerSecond of each row of a counter against the previous row; the
// first is unknown. times are the readings' own, in seconds. restarts counts the
// server's restarts up to each row: a counter that was reset may have overtaken
// its previous reading. It may be nil.
func Rates(values, times, restarts []float64) []float64 {
	rates := make([]float64, len(values))
	for i := range rates {
		if i == 0 || restarts != nil && restarts[i] != restarts[i-1] {
			rates[i] = Unknown()
			continue
		}
		rates[i] = PerSecond(values[i-1], values[i], times[i]-times[i-1])
	}
	return rates
}

// Growth is how much a counter grew over all rows, one after the other. Growth across
// a restart is not known and left out; rows without a value are bridged.
type Growth struct {
	sum, last, restarts float64
	known, begun        bool
}

// Add adds a row; restarts counts the server's restarts up to it.
func (g *Growth) Add(v, restarts float64) {
	if !IsKnown(v) {
		return
	}
	if g.begun && restarts == g.restarts && v >= g.last {
		g.sum, g.known = g.sum+v-g.last, true
	}
	g.last, g.restarts, g.begun = v, restarts, true
}

// Sum is unknown if the counter was never read twice without a restart between.
func (g *Growth) Sum() float64 {
	if !g.known {
		return Unknown()
	}
	return g.sum
}

// Limit replaces values above most by it, in place. A share of time may come out
// slightly above 1, since the times of two answers are not exactly those of the
// server's own readings.
func Limit(values []float64, most float64) {
	for i, v := range values {
		if v > most {
			values[i] = most
		}
	}
}
