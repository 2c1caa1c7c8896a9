package series

// PerSecond returns the growth of a counter per second between two readings. It is unknown if
// either reading is unknown, if no time passed, or if the counter fell because its server restarted
// or flushed its counters.
func PerSecond(before, after, seconds float64) float64 {
	grown := after - before
	if !(grown >= 0) || !(seconds > 0) {
		return Unknown()
	}
	return grown / seconds
}

// Rates returns PerSecond of each row of a counter and the previous row; the first row is unknown.
// times are the times of the readings in seconds. restarts counts the server's restarts up to each
// row, since a counter can exceed its previous reading again after a reset. restarts may be nil.
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

// Growth is the growth of a counter over all rows, added one after the other. Growth across a
// restart is unknown and left out. Growth over rows without a value counts.
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

// Sum returns the growth. It is unknown if no two readings have no restart between them.
func (g *Growth) Sum() float64 {
	if !g.known {
		return Unknown()
	}
	return g.sum
}

// Limit replaces values above most by most, in place. A share of time may come out slightly above
// 1, since the times of two answers differ slightly from the times at which the server read its
// counters.
func Limit(values []float64, most float64) {
	for i, v := range values {
		if v > most {
			values[i] = most
		}
	}
}
