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
