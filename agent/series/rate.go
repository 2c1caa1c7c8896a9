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
